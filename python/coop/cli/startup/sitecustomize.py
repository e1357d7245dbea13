"""Python imports this when it starts, where `coop run` has put it in its way (cli/settings.py)."""

import importlib
import os
import sys


def _prepare() -> None:
    sys.path.remove(os.path.dirname(__file__))  # noqa: PTH120
    try:
        from coop.cli import program

        program.prepare()
    except BaseException as error:
        # Python would print it and go on, without a budget.
        try:
            os.write(2, f"coop run: error: {error}\n".encode(errors="backslashreplace"))
        finally:
            os._exit(2)


def _hand_over() -> None:
    """To the one that was to be imported, if there is one."""
    this = sys.modules.pop(__name__)
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, this)


_prepare()
_hand_over()
