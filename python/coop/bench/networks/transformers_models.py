"""Networks for words, as transformers has them, with random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coop.bench.networks.workload import Workload, words


def bert_large(batch: int, shortest: int | None = None) -> Workload:
    def make() -> nn.Module:
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(
            vocab_size=30522,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        )
        return BertForMaskedLM(config).train()

    return Workload(make, words(batch, 512, 30522, shortest), _its_own_loss)


def bert_of_lengths(batch: int) -> Workload:
    return bert_large(batch, shortest=256)


def gpt_2_7b(batch: int) -> Workload:
    def make() -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            vocab_size=50257,
            n_positions=1024,
            n_embd=2560,
            n_layer=32,
            n_head=32,
            use_cache=False,
        )
        return GPT2LMHeadModel(config).train()

    return Workload(make, words(batch, 1024, known=50257), _its_own_loss)


def llama_1b(batch: int) -> Workload:
    def make() -> nn.Module:
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(
            vocab_size=32000,
            hidden_size=2048,
            intermediate_size=5632,
            num_hidden_layers=22,
            num_attention_heads=32,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            use_cache=False,
        )
        return LlamaForCausalLM(config).to(torch.bfloat16).train()

    return Workload(make, words(batch, 2048, known=32000), _its_own_loss)


def _its_own_loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return model(input_ids=inputs, labels=targets).loss
