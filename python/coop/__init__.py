"""Coop: a memory budget for PyTorch.

Inside a budget, tensors that do not fit are evicted and recomputed when they are needed again;
the answer stays the same, bit for bit.
"""

__version__ = "0.1.0"
