"""What the documents' pages show is what one sees: snippets run, and print the words below them.

The guide has tests of its own, and commands of the simulator are test_readme.py's."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, environment

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

import coop  # noqa: E402
from refresh_docs import words_of  # noqa: E402

PAGES = (
    "README.md",
    "docs/troubleshooting.md",
    "docs/policies.md",
    "docs/report.md",
    "docs/simulator.md",
)
# A snippet, and what it prints if that is shown.
SNIPPET = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```\n(?P<output>(?!\$).*?)^```$)?", re.M | re.S
)
# What readers bring along.
BEFORE = {
    "README.md": "import torch\n\ndef train():\n    torch.ones(100_000).sum()\n\n",
    "docs/simulator.md": "import coop, torch\n\nbatches, train_step = [torch.ones(9)], torch.sum\n",
}


def words(text):
    """Times are measured."""
    return words_of(re.sub(r"\b(us|ms|s)\b", "#", text)).strip()


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_and_print_what_is_shown(tmp_path, page):
    found = list(SNIPPET.finditer((ROOT / page).read_text()))
    assert found
    program = tmp_path / "page.py"
    program.write_text(BEFORE.get(page, "") + "".join(it["code"] for it in found))
    done = subprocess.run(
        [sys.executable, "-u", program],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert words(done.stdout) == words("".join(it["output"] or "" for it in found))


def sources():
    """Texts that go on in the next line are in one."""
    files = [*(ROOT / "src/plugin").rglob("*.cpp"), *(ROOT / "python/coop").rglob("*.py")]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(it.read_text() for it in files))


def test_errors_that_are_explained_are_ours():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    texts = re.findall(r"^\| \*(.+?)\* \|", page, re.MULTILINE)
    assert len(texts) >= 5
    every = sources()
    assert [it for it in texts if it not in every] == []


def test_what_holds_memory_is_explained():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    text = (ROOT / "src/core/engine/out_of_memory.cpp").read_text()
    body = text[text.index("describe(Holder holder)") :]
    known = re.findall(r'return "(.+)";', body.partition("\n}\n")[0])
    assert len(known) == 8
    explains_itself = {"of outputs and workspaces of running operators", "of small tensors"}
    assert {it for it in known if f"| {it} |" not in page} == explains_itself


def test_every_warning_has_its_line():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    listed = re.findall(r"^\| `coop\.(\w+Warning)` \|", page, re.MULTILINE)
    assert sorted(listed) == [it for it in coop.__all__ if it.endswith("Warning")]


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "src/README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda it: str(it.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path):
    links = re.findall(r"\]\(([^)#\s]+)\)", document.read_text())
    relative = [it for it in links if "://" not in it]
    assert [it for it in relative if not (document.parent / it).exists()] == []
