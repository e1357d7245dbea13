"""Networks for pictures, as torchvision has them, with random weights."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from coop.bench.networks.workload import Workload, images


def resnet50(batch: int) -> Workload:
    return Workload(lambda: _make("resnet50"), images(batch, 224))


def resnet152(batch: int) -> Workload:
    return Workload(lambda: _make("resnet152"), images(batch, 224))


def swin_t(batch: int) -> Workload:
    return Workload(lambda: _make("swin_t"), images(batch, 224))


def inception_v3(batch: int) -> Workload:
    return Workload(
        lambda: _make("inception_v3", init_weights=True), images(batch, 299), _both_heads
    )


def _make(name: str, **options: object) -> nn.Module:
    import torchvision

    return getattr(torchvision.models, name)(**options)


def _both_heads(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    heads = model(inputs)
    loss = functional.cross_entropy(heads.logits, targets)
    return loss + 0.4 * functional.cross_entropy(heads.aux_logits, targets)
