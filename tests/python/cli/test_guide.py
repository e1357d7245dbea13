"""What docs/guide.md shows is what one sees: snippets run, commands print those words."""

import re
import shlex
import subprocess

import pytest
from command_line import COOP, ROOT, environment

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup")

from refresh_docs import words_of  # noqa: E402

GUIDE = (ROOT / "docs/guide.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```\n\$ coop (.*?)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def words(text):
    """Times are measured, and who took most of them as well."""
    return words_of(re.sub(r"\b(us|ms|s)\b|aten::\w+", "#", text))


def test_commands_print_what_is_shown(tmp_path, coop_sim):
    (tmp_path / "train.py").write_text(SNIPPETS[0])
    assert len(COMMANDS) == 3
    for arguments, shown in COMMANDS:
        done = subprocess.run(
            [*COOP, *shlex.split(arguments)],
            cwd=tmp_path,
            env=environment(COOP_SIM=str(coop_sim.program)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert words(done.stdout) == words(shown)


def test_snippets_run(capsys, monkeypatch):
    monkeypatch.setenv("COOP_DEVICE", "cpu")
    names = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, "guide.md", "exec"), names)
    assert re.fullmatch(r"loss [\d.]+\nTrue\n", capsys.readouterr().out)
