"""What a script can see of how it was started."""

import json
import os
import sys
from pathlib import Path

from layers import batches, network, train


def main():
    model = network()
    losses = train(model, batches(3))
    main_module = sys.modules["__main__"]
    seen = {
        "argv": sys.argv,
        "path": sys.path,
        "name": __name__,
        "file": __file__,
        "spec": repr(__spec__),
        "is main": main_module.main is main,
        "variables": {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        "flags": repr(sys.flags),
        "losses": losses,
    }
    Path("seen.json").write_text(json.dumps(seen, indent=1))
    return 3


if __name__ == "__main__":
    sys.exit(main())
