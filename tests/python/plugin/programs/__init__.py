"""Programs as people write them, small. Each is registered in PROGRAMS."""

from . import autograd, dynamic, mutations, optimizers, precision, sequences, transforms, vision
from .program import PROGRAMS, Outcome, Program, differences, run

__all__ = ["PROGRAMS", "Outcome", "Program", "differences", "run"]
_ = (autograd, dynamic, mutations, optimizers, precision, sequences, transforms, vision)
