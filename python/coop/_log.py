"""What coop says by the way, through Python's `logging` under the name "coop".

Nothing is printed unless the program sets up logging. What a program has to act on is said by
errors and warnings, not here.
"""

from __future__ import annotations

import logging

log = logging.getLogger("coop")
log.addHandler(logging.NullHandler())


def only_if_asked() -> None:
    """Around a program that does not know of us: its log is to be what it is without. One that
    names us (`logging.getLogger("coop").setLevel(...)`) is told all the same."""
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)
