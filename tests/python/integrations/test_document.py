"""The snippets of docs/integrations.md run, with what readers bring along."""

import ast
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
for needed in ("transformers", "accelerate", "lightning.pytorch"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: make setup")

import coop  # noqa: E402
import lightning_callback  # noqa: E402
import transformers_trainer  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from command_line import ROOT  # noqa: E402
from lightning.pytorch.loggers import CSVLogger  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

TEXT = (ROOT / "docs/integrations.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.filterwarnings("ignore:::lightning")  # its own


def pairs(rows):
    return TensorDataset(torch.randn(rows, 128), torch.randint(10, (rows,)))


def for_transformers(folder):
    trainer = transformers_trainer.make_trainer(str(folder), steps=2)
    return {
        "model": trainer.model,
        "arguments": trainer.args,
        "sentences": trainer.train_dataset,
    }


def for_lightning(folder):
    return {
        "network": lightning_callback.Network(),
        "logger": CSVLogger(folder),
        "batches": DataLoader(pairs(4096), batch_size=1024),
    }


def for_accelerate(_):
    accelerator = Accelerator(cpu=True)
    layers = [it for _ in range(12) for it in (nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1))]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(pairs(2048), batch_size=1024)
    names = ("model", "optimizer", "loader")
    prepared = dict(zip(names, accelerator.prepare(model, optimizer, loader), strict=True))
    return {"accelerator": accelerator, "functional": nn.functional, **prepared}


def test_snippets_run(tmp_path, capsys):
    before = (for_transformers, for_lightning, for_accelerate)
    for bring, snippet in zip(before, SNIPPETS, strict=True):
        exec(compile(snippet, "integrations.md", "exec"), bring(tmp_path))
        assert coop.stats().evictions > 0, snippet
        assert not torch.ops.coop.has_budget()
    assert capsys.readouterr().out.count("True\n") == 1


def test_every_example_is_there():
    linked = set(re.findall(r"\(\.\./examples/(\w+\.py)\)", TEXT))
    assert linked == {it.name for it in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: it.name)
def test_examples_say_how_they_are_run(example):
    """Alone, in a budget of their own, and unchanged."""
    docstring = ast.get_docstring(ast.parse(example.read_text()))
    alone, *others = docstring.splitlines()[2:]
    assert "--budget" not in alone
    assert len(others) >= 2
    for command in others:
        assert f"examples/{example.name}" in command
        assert re.search(r" --budget \d+MiB ", f"{command} ")


def test_nothing_else_of_ours_imports_a_framework():
    imports = re.compile(r"^\s*(?:from|import) (?:transformers|accelerate|\w*lightning)\b", re.M)
    package = ROOT / "python/coop"
    others = [it for it in package.rglob("*.py") if "bench" not in it.relative_to(package).parts]
    found = {it.name for it in others if imports.search(it.read_text())}
    assert found == {"transformers.py", "lightning.py"}
