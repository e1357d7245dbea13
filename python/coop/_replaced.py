"""For a while, something else under a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replaced(owner: object, name: str, new: object) -> Iterator[None]:
    own = vars(owner).get(name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        if own is not None:
            setattr(owner, name, own)
        else:
            delattr(owner, name)  # inherited again
