"""Is the test of the engine any good? Seeds faults, one at a time, and demands that it finds them.

Each fault is a small change to a copy of the sources: a barrier left out, a version mixed up, a pin
forgotten. The random programs and the written-out cases are built against it and must fail.

usage: engine_faults.py [--jobs N] [NAME...]      NAME: only these faults; --list names them all
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = (
    "tests/core/engine/engine_test.cpp",
    "tests/core/engine/engine_bounds_test.cpp",
    "tests/core/engine/engine_property_test.cpp",
    "tests/core/engine/engine_fault_injection_test.cpp",
)
SUPPORT = ("tests/support/failing_new.cpp",)
FLAGS = ["-std=c++20", "-O1", "-fno-trapping-math", "-DCOOP_CHECK_LEVEL=1", "-Isrc", "-Itests"]
ENGINE = "src/core/engine/engine.cpp"
REPLAY = "src/core/engine/replay.cpp"
BARRIER = "src/core/engine/write_barrier.cpp"
GRAPH = "src/core/lineage/graph.cpp"
SEARCH = "src/core/policy/window_search.cpp"

# name, file, what is replaced, by what
FAULTS = [
    ("barrier-skipped", BARRIER, "if (descendants.empty() && !is_in_use) continue;", "continue;"),
    ("barrier-stops-at-past-values", BARRIER, "(made.is_current ? found : through)", "found"),
    ("cut-forgotten", BARRIER, "    graph_.cut(id);\n", ""),
    ("barrier-runs-once", BARRIER, "      is_settled = false;\n", ""),
    (
        "aside-not-kept",
        BARRIER,
        "    place(write.before, write.aside);\n",
        "    free(write.aside);\n",
    ),
    ("old-version-keeps-the-block", BARRIER, "  before.block = {};\n", ""),
    (
        "lost-source-recorded",
        ENGINE,
        "const bool is_lost = value.is_source() && (input.is_mutated || !value.is_resident());",
        "const bool is_lost = false;",
    ),
    ("mutation-forgotten", BARRIER, ".is_mutated = true, ", ".is_mutated = false, "),
    (
        "claimed-block-stays-with-its-value",
        REPLAY,
        "  value.block = {};\n  engine_.value_of_[block.index()] = {};\n  engine_.pool_.set_tenure",
        "  engine_.pool_.set_tenure",
    ),
    (
        "order-of-planning",
        REPLAY,
        "agenda_.emplace(call.sequence, call_id);",
        "agenda_.emplace(~call.sequence, call_id);",
    ),
    (
        "inputs-not-pinned",
        REPLAY,
        "    engine_.pool_.pin(block);\n    held.pinned",
        "    held.pinned",
    ),
    ("past-output-dropped", REPLAY, "value.is_current || value.wanted > 0;", "value.is_current;"),
    ("scratch-kept", REPLAY, "if (is_scratch && value.wanted == 0) engine_.take_block(id);", ""),
    ("wrong-output", REPLAY, "if (value.output == i && !value", "if (!value"),
    (
        "resident-output-replaced",
        REPLAY,
        "value.output == i && !value.is_resident() && is_wanted",
        "value.output == i && is_wanted",
    ),
    ("targets-not-pinned", REPLAY, "    if (value.is_target) engine_.pin(block, pins_);\n", ""),
    ("missing-input-not-planned", REPLAY, "return !missing.empty();", "return false;"),
    (
        "source-evicted",
        ENGINE,
        "is_exported ? Tenure::kStays : Tenure::kMovable);\n    return;\n",
        "is_exported ? Tenure::kStays : Tenure::kMovable);\n    "
        "pool_.set_evictable(value.block, 1, now_);\n    return;\n",
    ),
    (
        "released-source-freed",
        ENGINE,
        "    note_orphan(id);\n  } else",
        "    take_block(id);\n  } else",
    ),
    ("exported-evicted", ENGINE, "&& !is_small && !is_exported", "&& !is_small"),
    (
        "aborted-write-not-restored",
        ENGINE,
        "    graph_.restore(write.storage, write.before);\n",
        "",
    ),
    (
        "eviction-not-told",
        ENGINE,
        "if (value.is_current) world_.detach(",
        "if (false) world_.detach(",
    ),
    ("reader-lost", GRAPH, "    ++value.readers;\n", ""),
    (
        "call-outlives-outputs",
        GRAPH,
        "  if (--call.living_outputs == 0) erase_call(call_id, doomed);",
        "  --call.living_outputs;",
    ),
    (
        "exported-moved",
        ENGINE,
        "is_exported ? Tenure::kStays : Tenure::kMovable",
        "Tenure::kMovable",
    ),
    ("read-inside-and-adopted", ENGINE, "!version.is_current || version.readers > 0", "false"),
    ("in-use-not-protected", BARRIER, "made.holds > 0) *is_in_use", "false) *is_in_use"),
    (
        "bound-stops-operators",
        BARRIER,
        "      break;  // another time",
        "      throw;  // another time",
    ),
    # Of what happens when something throws.
    ("copy-leaks", BARRIER, "    free(aside);\n    throw;", "    throw;"),
    ("fresh-memory-leaks", ENGINE, "      if (write.fresh) free(write.fresh);\n", ""),
    ("aside-leaks", ENGINE, "      if (write.aside) free(write.aside);\n", ""),
    (
        "pins-kept-after-failure",
        ENGINE,
        "    unpin_all(call.pins);\n    throw;\n",
        "    throw;\n",
    ),
    ("sources-pinned-after-failure", BARRIER, "    unpin_all(pins);\n    throw;\n", "    throw;\n"),
    (
        "claimed-block-leaks",
        REPLAY,
        "    for (const BlockId block : owned) static_cast<void>(pool.free(block));\n",
        "",
    ),
    ("wanted-after-failure", REPLAY, "    value.wanted = 0;\n", ""),
    ("block-leaks-without-a-record", ENGINE, "      static_cast<void>(pool_.free(block));\n", ""),
    ("recording-may-fail", ENGINE, "  graph_.reserve(made, made, call.inputs.size());\n", ""),
    ("versions-may-fail", ENGINE, "    graph_.reserve(0, writes.size(), 0);\n", ""),
    ("orphans-may-fail", BARRIER, "if (orphans_.capacity() >= needed()) return;", "return;"),
    ("search-without-room", SEARCH, "if (sum_.size() < room)", "if (begin_.size() < room)"),
]


def compile_one(directory, source):
    target = directory / "objects" / (source.replace("/", "_") + ".o")
    subprocess.run(
        ["g++", *FLAGS, "-c", source, "-o", str(target)],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
    )
    return target


def run_tests(directory, objects):
    """The first test that fails, or None."""
    core = [o for o in objects if not o.name.startswith("tests_core")]
    for test in (o for o in objects if o.name.startswith("tests_core")):
        program = directory / (test.name + ".run")
        libraries = ["-lgtest", "-lgtest_main", "-lpthread"]
        subprocess.run(
            ["g++", str(test), *map(str, core), *libraries, "-o", str(program)], check=True
        )
        try:
            done = subprocess.run([program], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return f"{program.stem}: no end"
        if done.returncode != 0:
            failed = [ln for ln in done.stdout.splitlines() if "FAILED  ] " in ln]
            return failed[0].split("] ")[1] if failed else f"exit code {done.returncode}"
    return None


def try_fault(base, fault):
    name, file, before, after = fault
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "copy"
        shutil.copytree(base, directory)
        path = directory / file
        text = path.read_text()
        if before not in text:
            return name, None, f"{file} no longer has: {before!r}"
        path.write_text(text.replace(before, after, 1))
        try:
            compile_one(directory, file)
        except subprocess.CalledProcessError as error:
            return name, None, "does not compile: " + error.stderr[:300]
        found = run_tests(directory, sorted((directory / "objects").glob("*.o")))
        return name, found, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--list", action="store_true", help="name all faults and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.list:
        print("\n".join(name for name, *_ in FAULTS))
        return 0
    faults = [f for f in FAULTS if not args.names or f[0] in args.names]
    if args.names and len(faults) != len(args.names):
        sys.exit("no such fault; --list names them")

    missed = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        concurrent.futures.ThreadPoolExecutor(args.jobs) as pool,
    ):
        base = Path(temporary) / "base"
        for folder in ("src", "tests"):
            shutil.copytree(ROOT / folder, base / folder)
        (base / "objects").mkdir()
        sources = [str(p.relative_to(base)) for p in sorted(base.glob("src/core/*/*.cpp"))]
        list(pool.map(lambda s: compile_one(base, s), [*sources, *TESTS, *SUPPORT]))
        healthy = run_tests(base, sorted((base / "objects").glob("*.o")))
        if healthy:
            sys.exit(f"the tests fail without any fault: {healthy}")
        for name, found, problem in pool.map(lambda f: try_fault(base, f), faults):
            print(f"{name:32} {problem or found or 'NOT FOUND'}", flush=True)
            if not found:
                missed.append(name)
    print(f"{len(faults) - len(missed)} of {len(faults)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
