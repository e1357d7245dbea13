"""`python -m coop` is the command `coop`."""

import sys

from coop.cli import main

if __name__ == "__main__":
    sys.exit(main())
