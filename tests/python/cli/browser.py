"""A page in a real browser, without a window: what it says, and what it does when it is used."""

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((it for it in map(shutil.which, NAMES) if it), None)

needs_browser = pytest.mark.skipif(
    PROGRAM is None, reason="there is no Chromium (Debian: chromium), and pages go unseen"
)


@dataclass(frozen=True)
class Seen:
    answer: object
    """What the script gave back."""
    complaints: list[str]
    """Of the console, and of scripts."""


def look_at(page: Path, script: str, width: int = 1600, height: int = 1200) -> Seen:
    """`script` is the body of a function that is called when the page is drawn."""
    asked = page.with_name(f"asked-{page.name}")
    asked.write_text(
        page.read_text().replace("<script>", _WATCH, 1).replace("</body>", _ask(script))
    )
    done = _run(asked, width, height, "--dump-dom")
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    answer = json.loads(bytes.fromhex(found[1]).decode())
    console = re.findall(r"CONSOLE[^\"]*\"(.*)\", source", done.stderr)
    return Seen(answer["answer"], answer["errors"] + console)


def print_pdf(page: Path, pdf: Path) -> None:
    _run(page, 1200, 900, f"--print-to-pdf={pdf}")


def _run(page: Path, width: int, height: int, *options: str) -> subprocess.CompletedProcess[str]:
    profile = tempfile.mkdtemp(prefix="profile-", dir=page.parent)
    command = [
        PROGRAM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        "--virtual-time-budget=5000",
        *options,
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


_WATCH = """<script>
const seenErrors = [];
addEventListener("error", (event) => seenErrors.push(String(event.message)));
</script><script>"""


def _ask(script: str) -> str:
    """The answer comes as hexadecimal: what is in it is nobody's markup."""
    return f"""<script>
addEventListener("load", () => setTimeout(() => {{
  let answer = null;
  try {{ answer = (() => {{ {script} }})(); }} catch (error) {{ seenErrors.push(String(error)); }}
  const bytes = new TextEncoder().encode(JSON.stringify({{ answer, errors: seenErrors }}));
  const pre = document.createElement("pre");
  pre.id = "answer";
  pre.textContent = [...bytes].map((it) => it.toString(16).padStart(2, "0")).join("");
  document.body.append(pre);
}}, 200));
</script></body>"""
