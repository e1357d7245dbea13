"""`coop doctor`: what there is here, whether coop works with it, and what to do if not."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import coop
from coop import _native, _versions
from coop._text import as_bytes
from coop.cli.parser import Parser, one_line
from coop.cli.support import TABLE

EXAMPLES = """\
The exit code is 0 if coop works here, 1 if it does not.

  coop doctor
  coop doctor --json | python -m json.tool
"""


@dataclass(frozen=True)
class Finding:
    what: str
    is_good: bool
    says: str
    advice: str = ""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(
        "doctor",
        description="Say what there is here, whether coop works with it, and what to do if not.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--json", action="store_true", help="the same for programs")
    is_json = parser.parse_args(arguments).json
    findings = _examine()
    print(_as_json(findings) if is_json else _as_text(findings))
    return 0 if _works(findings) else 1


def _works(findings: Sequence[Finding]) -> bool:
    return all(it.is_good for it in findings if it.what != "simulator")


def _examine() -> list[Finding]:
    found = [Finding("coop", True, f"{coop.__version__} in {Path(coop.__file__).parent}")]
    found.append(Finding("Python", True, platform.python_version()))
    # Each needs those before it.
    for what, look in _CHECKS.items():
        try:
            found.append(look(what))
        except Exception as error:  # whatever it is, it is the answer
            advice = _ADVICE.get(what, "")
            says = one_line(error).removesuffix(f": {advice}")
            found.append(Finding(what, False, says, advice))
            break
    return [*found, _simulator("simulator")]


def _torch(what: str) -> Finding:
    _versions.check_installed_torch()
    import torch

    _versions.check_version(torch.__version__)
    return Finding(what, True, torch.__version__)


def _plugin(what: str) -> Finding:
    from torch import ops

    from coop import _plugin

    _plugin.load()
    return Finding(what, True, f"for PyTorch {ops.coop.built_for_torch()}")


def _self_test(what: str) -> Finding:
    from coop import _plugin
    from coop._self_test import CASES

    _plugin.start()
    return Finding(what, True, f"every operator is seen once, in {len(CASES)} ways to run it")


def _host(what: str) -> Finding:
    import torch

    from coop.cli import memory

    device = torch.device("cpu")
    _recompute_on(device)
    budget = as_bytes(memory.free_bytes(device))
    return Finding(what, True, f"evicted and recomputed; without --budget: {budget}")


def _cuda(what: str) -> Finding:
    import torch

    from coop.cli import memory

    if not torch.cuda.is_available():
        return Finding(what, True, "none that PyTorch sees; budgets are for the host's memory")
    device = torch.device("cuda", torch.cuda.current_device())
    _recompute_on(device)
    names = ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))
    budget = as_bytes(memory.free_bytes(device))
    return Finding(what, True, f"{names}: evicted and recomputed; without --budget: {budget}")


def _recompute_on(device: object) -> None:
    """More than fits, and all of it read again."""
    import torch

    chain = [torch.arange(1 << 18, dtype=torch.float32, device=device)]
    before = torch.cuda.memory_reserved(device) if device.type == "cuda" else 0
    with coop.budget(before + (8 << 20), device=device):
        for i in range(16):  # 1 MiB each
            chain.append(chain[-1] * 0.5 + i)
        is_right = [torch.equal(chain[i + 1], chain[i] * 0.5 + i) for i in range(16)]
        recomputations = coop.stats().recomputations
    if not all(is_right) or recomputations == 0:
        raise RuntimeError("what was evicted did not come back as it was")


def _simulator(what: str) -> Finding:
    path = _native.simulator_path()
    try:
        done = subprocess.run([path, "--version"], text=True, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        advice = "apt-get install libcli11-dev libsimdjson-dev zlib1g-dev, then install coop again"
        return Finding(what, False, one_line(error), advice)
    return Finding(what, True, done.stdout.strip())


_CHECKS: dict[str, Callable[[str], Finding]] = {
    "PyTorch": _torch,
    "plugin": _plugin,
    "self-test": _self_test,
    "cpu": _host,
    "cuda": _cuda,
}
_ADVICE = {
    "PyTorch": _versions.INSTALL_TORCH,
    "plugin": "install coop again, so that it is built for this PyTorch",
    "self-test": "run without other packages that change PyTorch's dispatcher",
    "cuda": "coop run --device cpu has a budget for the host's memory",
}


def _as_text(findings: Sequence[Finding]) -> str:
    lines = [_line("ok" if it.is_good else "BAD", it.what, it.says) for it in findings]
    for at, it in reversed(list(enumerate(findings))):
        if not it.is_good and it.advice:
            lines.insert(at + 1, _line("", "", f"-> {it.advice}"))
    lines += ["", "Together with:"]
    for it in TABLE:
        name = f"{it.what} {it.installed or ''}"
        lines.append(f"  {name:<22}{it.state:<26}{it.says}")
    works = "coop works here." if _works(findings) else "coop does not work here."
    return "\n".join([*lines, "", works])


def _line(state: str, what: str, says: str) -> str:
    return f"{state:<5}{what:<11}{says}".rstrip()


def _as_json(findings: Sequence[Finding]) -> str:
    together = [
        {"what": it.what, "state": it.state, "says": it.says, "installed": it.installed}
        for it in TABLE
    ]
    whole = {
        "works": _works(findings),
        "findings": [asdict(it) for it in findings],
        "together_with": together,
    }
    return json.dumps(whole, indent=2)
