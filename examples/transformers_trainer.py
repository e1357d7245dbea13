"""The Trainer of Hugging Face's transformers, with a small BERT and made-up sentences.

python examples/transformers_trainer.py                    PyTorch alone
python examples/transformers_trainer.py --budget 30MiB     a callback of coop's
coop run --budget 30MiB examples/transformers_trainer.py   the same, without a line of it
"""

import argparse

import coop
import torch
from coop.integrations.transformers import CoopCallback
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)


def make_trainer(folder: str, steps: int = 6, callbacks=()) -> Trainer:
    set_seed(0)
    config = BertConfig(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
    )
    words, labels = torch.randint(100, (128, 64)), torch.randint(2, (128,))
    return Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=32,
            save_steps=3,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
        ),
        train_dataset=[
            {"input_ids": sentence, "labels": label}
            for sentence, label in zip(words, labels, strict=True)
        ],
        callbacks=list(callbacks),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", help="such as 30MiB; without it, PyTorch alone")
    parser.add_argument("--folder", default="trained", help="for checkpoints")
    parser.add_argument("--resume", metavar="CHECKPOINT")
    options = parser.parse_args()
    callbacks = [CoopCallback(options.budget, log=True)] if options.budget else []
    trainer = make_trainer(options.folder, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=options.resume)
    if options.budget:
        print(coop.stats())


if __name__ == "__main__":
    main()
