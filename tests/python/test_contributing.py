"""What CONTRIBUTING.md tells a newcomer to do can be done: its policy compiles and is found by its
name, and what it names is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
(POLICY,) = [text for language, text in BLOCKS if language == "cpp"]
(LINE,) = re.findall(r"^COOP_POLICY\(.*\)$", TEXT, re.MULTILINE)
COMMANDS = [
    line for language, text in BLOCKS for line in text.splitlines() if not language and line != LINE
]

CHOOSES = """
#include <iostream>
#include "core/policy/policy.hpp"
#include "core/pool/pool.hpp"

// Of two blocks of one size the cheaper is to go, though it was used last.
int main() {
  using namespace coop;
  const auto policy = make_policy("cheapest");
  FakeBacking backing;
  Pool pool({.bytes = to_bytes(8), .fit = policy->traits().fit, .small_limit = 0}, backing);
  const auto hold = [&](double cost, double last_use) {
    const BlockId block = *pool.allocate(to_bytes(4), Placement::kExpensive);
    pool.set_evictable(block, cost, last_use);
    return block;
  };
  hold(9, 1);
  const BlockId cheap = hold(3, 2);
  std::vector<BlockId> victims;
  policy->choose_victims(pool, {to_bytes(4), Placement::kExpensive, 3}, victims);
  std::cout << policy->traits().summary << "\\n";
  return victims == std::vector{cheap} ? 0 : 1;
}
"""


def test_the_policy_is_found_by_its_name_and_chooses(tmp_path):
    compiler = shutil.which("g++")
    library = ROOT / "build/release/src/libcoop_core.a"
    if compiler is None or not library.exists():
        pytest.skip("g++ or the library of the core is missing: make build")
    # As if the line had been added: the compiler looks here first.
    folder = tmp_path / "core/policy"
    folder.mkdir(parents=True)
    lines = (ROOT / "src/core/policy/policies.inc").read_text()
    (folder / "policies.inc").write_text(f"{lines}{LINE}\n")
    (tmp_path / "cheapest.cpp").write_text(POLICY)
    (tmp_path / "chooses.cpp").write_text(CHOOSES)
    registry = ROOT / "src/core/policy/registry.cpp"
    sources = [tmp_path / "cheapest.cpp", tmp_path / "chooses.cpp", registry]
    program = tmp_path / "chooses"
    flags = ["-std=c++20", "-I", tmp_path, "-I", ROOT / "src"]
    built = subprocess.run(
        [compiler, *flags, *sources, library, "-o", program], text=True, capture_output=True
    )
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], text=True, capture_output=True)
    assert done.returncode == 0
    assert done.stdout == LINE.split('"')[3] + "\n"


def test_what_is_named_is_there():
    names = re.findall(r"`((?:src|tests|python|scripts|build)/[\w./]+)`", TEXT)
    made = {"src/core/policy/cheapest.cpp", "build/release", "build/model.pt"}
    assert [it for it in names if it not in made and not (ROOT / it).exists()] == []
    assert "POLICIES = " in (ROOT / "python/coop/cli/run.py").read_text()


def test_commands_are_there():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    stages = re.findall(r"^stage_(\w+)\(\)", (ROOT / "scripts/test.sh").read_text(), re.MULTILINE)
    for command in COMMANDS:
        first, *words = command.split()
        if first == "make":
            assert words[0] in targets, command
        if found := re.search(r'STAGES="(.*)"', command):
            assert set(found[1].split()) <= set(stages), command
        if first.startswith("scripts/"):
            assert (ROOT / first).exists(), command
    asked = " ".join(COMMANDS)
    for target in ("policy_conformance_test", "coop-sim", "coop-plugin"):
        assert target in asked
    assert (ROOT / "tests/core/policy/policy_conformance_test.cpp").exists()


def test_the_training_runs(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup")
    (train,) = [it for it in COMMANDS if " coop run " in it]
    words = train.replace(" cheapest ", " lru ").replace("build/", f"{tmp_path}/").split()[2:]
    environment = {**os.environ, "PYTHONPATH": "python"}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    (evicted,) = re.findall(r"^coop: evicted +(\d+) tensors$", done.stderr, re.MULTILINE)
    assert int(evicted) > 0
    assert (tmp_path / "model.pt").exists()


def test_the_sweep_runs(coop_sim):
    (sweep,) = [it for it in COMMANDS if " sweep " in it]
    words = sweep.replace(",cheapest", "").split()[1:]
    assert "  coop " in coop_sim.text(*words, "--jobs", 1)
