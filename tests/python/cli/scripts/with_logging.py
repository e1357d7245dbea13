"""Logs all that there is to log to a file, and takes warnings for errors."""

import atexit
import logging
import warnings

logging.basicConfig(filename="train.log", level=logging.DEBUG, format="%(name)s %(message)s")
logging.captureWarnings(True)
warnings.simplefilter("error")

import torch  # noqa: E402
from layers import batches, network, train  # noqa: E402

log = logging.getLogger(__name__)
atexit.register(lambda: log.info("over, with %s", torch.rand(1)))
model = network()
for number, loss in enumerate(train(model, batches(3))):
    log.info("step %d, loss %r", number, loss)
log.debug("%s", {name: value.sum() for name, value in model.state_dict().items()})
