"""For the Trainer of Lightning, by either of its names."""

from __future__ import annotations

from coop.integrations._training import BudgetOfTraining

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback


class CoopCallback(Callback):
    """Training inside a budget:

        Trainer(callbacks=[CoopCallback("8GiB")], ...)

    It begins with `fit`, on the Trainer's device, before the model gets there, and is over with it,
    also if that fails.
    log: what is evicted and recomputed goes to the Trainer's loggers, as coop/evictions and so on.
    All others are those of coop.budget.
    """

    def __init__(self, size: int | str, *, log: bool = False, **options: object) -> None:
        self._training = BudgetOfTraining(size, options)
        self._logs = log
        self._logged = 0  # gradients may be accumulated over several batches

    def setup(self, trainer, pl_module, stage) -> None:
        if stage == "fit":
            self._training.begin(trainer.strategy.root_device)

    def teardown(self, trainer, pl_module, stage) -> None:
        self._training.end()

    def on_exception(self, trainer, pl_module, exception) -> None:
        self._training.end(exception)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        step = trainer.global_step  # so many are done; in the Trainer's log this is the one before
        if self._logs and step != self._logged and step % trainer.log_every_n_steps == 0:
            self._logged = step
            news = self._training.news()
            for logger in trainer.loggers:
                logger.log_metrics(news, step=step - 1)
