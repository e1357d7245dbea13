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
    "tests/core/engine/engine_forecast_test.cpp",
    "tests/core/engine/engine_out_of_memory_test.cpp",
    "tests/core/engine/engine_observer_test.cpp",
    "tests/core/engine/engine_threads_test.cpp",
    "tests/core/engine/engine_during_replay_test.cpp",
    "tests/core/lineage/evicted_regions_test.cpp",
)
SUPPORT = ("tests/support/failing_new.cpp",)
FLAGS = ["-std=c++20", "-O1", "-fno-trapping-math", "-DCOOP_CHECK_LEVEL=1", "-Isrc", "-Itests"]
ENGINE = "src/core/engine/engine.cpp"
BLOCKS = "src/core/engine/blocks.cpp"
ENTRY = "src/core/engine/entry.cpp"
REGIONS = "src/core/lineage/evicted_regions.cpp"
REPLAY = "src/core/engine/replay.cpp"
BARRIER = "src/core/engine/write_barrier.cpp"
BOUNDS = "src/core/engine/lineage_bounds.cpp"
PLAN = "src/core/engine/replay_plan.cpp"
STORAGES = "src/core/engine/storages.cpp"
GRAPH = "src/core/lineage/graph.cpp"
SEARCH = "src/core/policy/window_search.cpp"

# name, file, what is replaced, by what
FAULTS = [
    (
        "barrier-skipped",
        BARRIER,
        "if (descendants.current.empty() && !descendants.are_in_use) continue;",
        "continue;",
    ),
    (
        "barrier-stops-at-past-values",
        BARRIER,
        "(made.is_current ? found.current : through)",
        "found.current",
    ),
    ("cut-forgotten", BARRIER, "    graph_.cut(id);\n", ""),
    ("barrier-runs-once", BARRIER, "      is_settled = false;\n", ""),
    (
        "aside-not-kept",
        BARRIER,
        "    place(write.before, write.aside);\n",
        "    give_back(write.aside);\n",
    ),
    (
        "old-version-keeps-the-block",
        BARRIER,
        "displace(write.before);",
        "graph_.values()[write.before].block;",
    ),
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
        "engine_.displace(id);\n  engine_.pool_.set_tenure",
        "value.block;\n  engine_.pool_.set_tenure",
    ),
    (
        "order-of-planning",
        PLAN,
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
    ("scratch-kept", PLAN, "is_scratch && value.wanted == 0", "false"),
    ("wrong-output", REPLAY, "if (value.output == i && !value", "if (!value"),
    (
        "resident-output-replaced",
        REPLAY,
        "value.output == i && !value.is_resident() && is_wanted",
        "value.output == i && is_wanted",
    ),
    (
        "targets-not-pinned",
        REPLAY,
        "if (graph_.values()[id].is_resident()) engine_.pin(graph_.values()[id].block, pins_);",
        "static_cast<void>(id);",
    ),
    ("missing-input-not-planned", PLAN, "return !missing.empty();", "return false;"),
    (
        "source-evicted",
        BLOCKS,
        "is_exported ? Tenure::kStays : Tenure::kMovable);\n",
        "is_exported ? Tenure::kStays : Tenure::kMovable);\n"
        "    pool_.set_evictable(value.block, 1, now_);\n",
    ),
    (
        "released-source-freed",
        STORAGES,
        "    note_orphan(id);\n  } else",
        "    give_back(displace(id));\n  } else",
    ),
    ("exported-evicted", ENGINE, "if (is_small || is_exported)", "if (is_small)"),
    (
        "export-protects-nothing",
        STORAGES,
        "  RunningCall call = begin_call({}, {&write, 1});\n",
        "  end_lineage(write.storage);\n  RunningCall call = begin_call({}, {});\n",
    ),
    (
        "aborted-write-not-restored",
        ENGINE,
        "    graph_.restore(write.storage, write.before);\n",
        "",
    ),
    (
        "eviction-not-told",
        BLOCKS,
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
        BLOCKS,
        "is_exported ? Tenure::kStays : Tenure::kMovable",
        "Tenure::kMovable",
    ),
    ("read-inside-and-adopted", ENGINE, "!version.is_current || version.readers > 0", "false"),
    ("in-use-not-protected", BARRIER, "made.holds > 0) found", "false) found"),
    (
        "bound-stops-operators",
        BOUNDS,
        "    hidden_allowed_ = graph_.hidden_count() -",
        "    throw;\n    hidden_allowed_ = graph_.hidden_count() -",
    ),
    # Of what happens when something throws.
    ("copy-leaks", BARRIER, "    give_back(aside);\n    throw;", "    throw;"),
    ("fresh-memory-leaks", ENGINE, "      if (write.fresh) give_back(write.fresh);\n", ""),
    ("aside-leaks", ENGINE, "      if (write.aside) give_back(write.aside);\n", ""),
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
        "    for (const BlockId block : owned) engine.give_back(block);\n",
        "",
    ),
    ("wanted-after-failure", REPLAY, "    value.wanted = 0;\n", ""),
    ("block-leaks-without-a-record", BLOCKS, "      static_cast<void>(pool_.free(block));\n", ""),
    ("recording-may-fail", ENGINE, "  graph_.reserve(made, made, call.inputs.size());\n", ""),
    ("versions-may-fail", ENGINE, "    graph_.reserve(0, writes.size(), 0);\n", ""),
    ("orphans-may-fail", BOUNDS, "if (orphans_.capacity() >= needed()) return;", "return;"),
    ("search-without-room", SEARCH, "if (sum_.size() < room)", "if (begin_.size() < room)"),
    ("forgetting-may-fail", ENGINE, "  reserve_forgotten();\n  if", "  if"),
    # Of what bounds lineage and replays.
    (
        "inputs-never-moved-aside",
        REPLAY,
        "    if (changes_inputs(graph_.calls()[call_id])) throw;\n",
        "    throw;\n",
    ),
    (
        "changed-inputs-changed-again",
        REPLAY,
        "    if (changes_inputs(graph_.calls()[call_id])) throw;\n",
        "",
    ),
    ("batches-of-evicted-kept", BOUNDS, "kMostWalked, Evicted::kComeBack", "0, Evicted::kStay"),
    ("only-recorded-calls-count", ENGINE, "  patience_.earn(cost);\n", ""),
    ("what-comes-along-must-come", REPLAY, " && !has_along_) throw", ") throw"),
    ("never-gives-up", REPLAY, "if (!engine_.patience_.spend(call.cost)) {", "if (false) {"),
    # Of several threads.
    (
        "writer-does-not-wait",
        ENGINE,
        "if (!can_begin_at_once(reads, writes)) entry.wait_for_replay();",
        "",
    ),
    (
        "release-frees-what-a-replay-reads",
        STORAGES,
        "value.is_resident() && value.wanted == 0",
        "value.is_resident()",
    ),
    ("replay-holds-nothing", REPLAY, "for (const ValueId id : held_) graph_.unhold(id);", ""),
    ("forgets-nothing", ENTRY, "engine_.world_.forget(some[i]);", ""),
    # Of costs and of what is kept for lineage alone.
    ("region-keeps-cost", REGIONS, "std::max(0.0, root.cost - cost)", "root.cost"),
    ("region-nodes-leak", REGIONS, "  unreference(member);\n", ""),
    ("orphans-fill-the-pool", BLOCKS, "if (end_all_orphans())", "if (false)"),
    ("report-forgets-the-end", "src/core/engine/out_of_memory.cpp", "std::min(room, asked)", "0"),
    (
        "observer-not-told-of-frees",
        BLOCKS,
        "  if (is_observed()) tell(about(EngineEvent::Kind::kFreed, block));\n  const",
        "  const",
    ),
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
            done = subprocess.run([program], capture_output=True, text=True, timeout=300)
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
