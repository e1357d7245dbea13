"""The snippets of docs/api.md run, one after the other."""

import gc
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/api.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def test_snippets_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them write files
    assert len(SNIPPETS) >= 8
    names = {}
    for number, snippet in enumerate(SNIPPETS):
        path = tmp_path / f"snippet_{number}.py"  # custom operators are looked up in their source
        path.write_text(snippet)
        exec(compile(snippet, path, "exec"), names)
    assert len(names["losses"]) == 3
    assert coop.stats().recomputations > 0
    printed = capsys.readouterr().out
    assert "time recomputing" in printed
    assert "budget that would do" in printed
    names.clear()
    gc.collect()
    assert torch.ops.coop.pools() == 0


def test_everything_public_is_documented():
    text = DOCUMENT.read_text()
    assert [name for name in coop.__all__ if name not in text] == []


def test_every_field_is_documented():
    text = DOCUMENT.read_text()
    fields = {**coop.Stats.__dataclass_fields__, **coop.OutOfMemoryFacts.__dataclass_fields__}
    assert [name for name in fields if f"`{name}`" not in text] == []
