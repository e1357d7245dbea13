"""What torchrun starts: an example with PyTorch alone, and inside a budget.

ddp_twice.py EXAMPLE FOLDER
"""

import runpy
import sys

_, example, folder = sys.argv
for name, arguments in {"plain": [], "inside": ["--budget", "10MiB"]}.items():
    sys.argv = [example, "--folder", f"{folder}/{name}", *arguments]
    runpy.run_path(example, run_name="__main__")
