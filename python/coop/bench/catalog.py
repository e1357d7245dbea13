"""The networks by name: what is known of each without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Size:
    """How large a network is on a kind of device."""

    maker: str
    """Of its workload, given a batch size: "file:function" of coop.bench.networks."""
    batch: int
    step_s: float
    """A plain step takes about so long. A guess, for the first --dry-run only."""
    needs: str | None = None
    """A package."""

    @property
    def is_missing(self) -> bool:
        return self.needs is not None and find_spec(self.needs) is None


@dataclass(frozen=True)
class Network:
    title: str
    layers: tuple[str, ...]
    """The classes of modules that people put torch.utils.checkpoint around."""
    cuda: Size | None = None
    """None: it is for a CPU only."""
    cpu: Size | None = None
    """Smaller, and of PyTorch alone. None: it is for a GPU only."""
    is_adam: bool = False
    """Otherwise SGD with momentum."""
    trace: str | None = None
    """Its recording in tests/data/h200, which has a lower bound."""
    shown_at: float = 0.5
    """The memory ratio of the short table."""
    variant_of: str | None = None
    """Another of them, with other batches or of another size: measured only where it is named."""
    not_compiled: str | None = None
    """Why torch.compile is not tried."""

    def size(self, device: str) -> Size | None:
        return self.cuda if device == "cuda" else self.cpu


_VISION = "torchvision_models"
_LANGUAGE = "transformers_models"
_WRITTEN_OUT = "one graph of some thousand operators: its cells are written out"
_LONGER = "another graph for nearly every step: its batches have lengths of their own"
_DRAWN = "another graph in every step: its path is drawn anew"

# Batch sizes on a GPU are the paper's authors'. Of the networks that are not theirs: what fills
# it. Most of theirs keep a GPU of today waiting for the host, with and without coop, and of GPT's
# memory they leave next to nothing to choose from; they are there once more with a batch that is
# scaled to such a one.
NETWORKS = {
    "resnet50": Network(
        "ResNet-50",
        ("Bottleneck",),
        cuda=Size(f"{_VISION}:resnet50", 115, 0.056, needs="torchvision"),
        cpu=Size("small_vision:resnet50", 16, 0.35),
        trace="resnet50",
    ),
    "resnet50-full": Network(
        "ResNet-50, full size",
        ("Bottleneck",),
        cpu=Size("small_vision:resnet50_full", 8, 3.1),
        variant_of="resnet50",
    ),
    "resnet152": Network(
        "ResNet-152",
        ("Bottleneck",),
        cuda=Size(f"{_VISION}:resnet152", 55, 0.067, needs="torchvision"),
        cpu=Size("small_vision:resnet152", 12, 0.5),
    ),
    "resnet152-220": Network(
        "ResNet-152, large batch",
        ("Bottleneck",),
        cuda=Size(f"{_VISION}:resnet152", 220, 0.22, needs="torchvision"),
        variant_of="resnet152",
    ),
    "inception-v3": Network(
        "Inception V3",
        tuple(f"Inception{letter}" for letter in "ABCDE"),
        cuda=Size(f"{_VISION}:inception_v3", 96, 0.07, needs="torchvision"),
        cpu=Size("small_vision:inception", 8, 0.2),
    ),
    "inception-v3-192": Network(
        "Inception V3, large batch",
        tuple(f"Inception{letter}" for letter in "ABCDE"),
        cuda=Size(f"{_VISION}:inception_v3", 192, 0.18, needs="torchvision"),
        variant_of="inception-v3",
    ),
    "swin-t": Network(
        "Swin-T",
        ("SwinTransformerBlock",),
        cuda=Size(f"{_VISION}:swin_t", 40, 0.036, needs="torchvision"),
        cpu=Size("small_swin:swin", 16, 0.2),
        trace="swin_t",
    ),
    "swin-t-320": Network(
        "Swin-T, large batch",
        ("SwinTransformerBlock",),
        cuda=Size(f"{_VISION}:swin_t", 320, 0.18, needs="torchvision"),
        variant_of="swin-t",
    ),
    "bert-large": Network(
        "BERT Large",
        ("BertLayer", "EncoderLayer"),
        cuda=Size(f"{_LANGUAGE}:bert_large", 16, 0.148, needs="transformers"),
        cpu=Size("small_language:bert", 8, 0.2),
        is_adam=True,
        trace="bert_large",
    ),
    "bert-lengths": Network(
        "BERT Large, lengths differ",
        ("BertLayer", "EncoderLayer"),
        cuda=Size(f"{_LANGUAGE}:bert_of_lengths", 16, 0.11, needs="transformers"),
        cpu=Size("small_language:bert_of_lengths", 8, 0.15),
        is_adam=True,
        not_compiled=_LONGER,
        variant_of="bert-large",
    ),
    "gpt-2.7b": Network(
        "GPT-3 2.7B",
        ("GPT2Block", "DecoderLayer"),
        cuda=Size(f"{_LANGUAGE}:gpt_2_7b", 4, 0.48, needs="transformers"),
        cpu=Size("small_language:gpt", 8, 0.2),
        is_adam=True,
        trace="gpt_2_7b",
        shown_at=0.6,  # parameters, gradients and Adam's state alone take more than half
    ),
    "gpt-2.7b-8": Network(
        "GPT-3 2.7B, large batch",
        ("GPT2Block", "DecoderLayer"),
        cuda=Size(f"{_LANGUAGE}:gpt_2_7b", 8, 0.87, needs="transformers"),
        is_adam=True,
        variant_of="gpt-2.7b",
    ),
    "bilstm": Network(
        "BiLSTM",
        ("Cell",),
        cuda=Size("bilstm:full", 2048, 0.16),
        cpu=Size("bilstm:small", 256, 0.15),
        trace="bilstm",
        not_compiled=_WRITTEN_OUT,
    ),
    "bilstm-65536": Network(
        "BiLSTM, large batch",
        ("Cell",),
        cuda=Size("bilstm:full", 65536, 0.58),
        not_compiled=_WRITTEN_OUT,
        variant_of="bilstm",
    ),
    "spos": Network(
        "SPOS",
        ("Choice",),
        cuda=Size("spos:full", 256, 0.04),
        cpu=Size("spos:small", 8, 0.1),
        trace="spos",
        not_compiled=_DRAWN,
    ),
    "spos-1024": Network(
        "SPOS, large batch",
        ("Choice",),
        cuda=Size("spos:full", 1024, 0.14),
        not_compiled=_DRAWN,
        variant_of="spos",
    ),
    "llama-1b": Network(
        "Llama 1.1B",
        ("LlamaDecoderLayer", "LlamaLayer"),
        cuda=Size(f"{_LANGUAGE}:llama_1b", 4, 0.2, needs="transformers"),
        cpu=Size("small_language:llama", 8, 0.25),
        is_adam=True,
    ),
    "unet": Network(
        "U-Net for diffusion",
        ("ResidualBlock", "Attention"),
        cuda=Size("unet:full", 32, 0.15),
        cpu=Size("unet:small", 4, 0.15),
    ),
}
