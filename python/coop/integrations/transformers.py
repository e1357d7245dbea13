"""For the Trainer of Hugging Face's transformers."""

from __future__ import annotations

from functools import cache, wraps

from transformers import Trainer, TrainerCallback

from coop.integrations._training import BudgetOfTraining


class CoopCallback(TrainerCallback):
    """Training inside a budget:

        Trainer(model, arguments, callbacks=[CoopCallback("8GiB")], ...)

    It begins when training does, on the Trainer's device, and is over with it, also if that fails.
    log: what is evicted and recomputed goes into the Trainer's log, as coop/evictions and so on.
    All others are those of coop.budget.
    """

    def __init__(self, size: int | str, *, log: bool = False, **options: object) -> None:
        self._training = BudgetOfTraining(size, options)
        self._logs = log
        _see_how_training_ends()

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self._training.begin(args.device)

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self._training.end()

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        if self._logs and logs is not None:
            news = self._training.news()
            logs.update(news)
            if state.log_history:
                state.log_history[-1].update(news)  # has been written down already


@cache
def _see_how_training_ends() -> None:
    """No event of the Trainer's says that training has failed."""
    train = Trainer.train

    @wraps(train)
    def train_and_tell(self: Trainer, *args, **kwargs):
        ours = [it for it in self.callback_handler.callbacks if isinstance(it, CoopCallback)]
        if not ours:
            return train(self, *args, **kwargs)
        # What we log is for those that come after us: for all that write logs.
        self.callback_handler.callbacks.sort(key=lambda it: it not in ours)
        try:
            return train(self, *args, **kwargs)
        except BaseException as error:
            for each in ours:
                each._training.end(error)
            raise

    Trainer.train = train_and_tell
