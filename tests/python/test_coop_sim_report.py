"""What `coop-sim report` says of a run: the same as the other commands, and every block besides."""

import json
import re

import pytest
from coop_sim_checks import BILSTM, RESNET, check_fields

CNN = "tests/data/cpu/resnet50.coop.gz"
TINY = 200  # ns: what rounding to whole ones can add up to


@pytest.fixture(
    scope="module", params=[(RESNET, "--inplace", "--ratio", ".5"), (CNN, "--ratio", ".6")]
)
def both(request, coop_sim):
    """A report, and what `run` says of the same."""
    trace, *options = request.param
    report = coop_sim.run("report", trace, *options)
    assert (report.returncode, report.stderr) == (0, "")
    run = coop_sim.json("run", trace, "--policy", "coop", *options)
    return json.loads(report.stdout), run


def test_figures_are_those_of_run(both):
    report, run = both
    check_fields(report)
    for field in set(run) - {"search_ns"}:
        assert report[field] == run[field], field
    last = report["all_steps"][-1]
    assert sum(it["ns"] for it in report["lost"]["ops"]) == pytest.approx(last["recomputed_ns"])
    assert sum(it["times"] for it in report["lost"]["ops"]) == run["recomputed_calls"]
    for group in ("ops", "modules"):
        times = [it["ns"] for it in report["lost"][group]]
        assert times == sorted(times, reverse=True)


def test_blocks_lie_in_the_pool_and_in_the_step(both):
    report, run = both
    blocks = report["blocks"]
    assert blocks["left_out"] == 0
    columns = [it for it in blocks if it != "left_out"]
    count = len(blocks["begin_ns"])
    assert count > 100
    assert all(len(blocks[column]) == count for column in columns)
    for begin, end in zip(blocks["begin_ns"], blocks["end_ns"], strict=True):
        assert 0 <= begin <= end <= report["step_ns"]
    for offset, size in zip(blocks["offset"], blocks["bytes"], strict=True):
        assert 0 < size <= offset + size <= run["budget_bytes"]
    assert max(blocks["filling"]) < len(report["fillings"])
    assert max(blocks["place"]) < len(report["places"])
    assert max(blocks["name"]) < len(report["names"])
    assert report["places"][0] == {"op": "", "module": ""}


def test_no_moment_has_two_blocks_at_one_address(both):
    """But for workspaces, which are drawn for as long as their operator runs."""
    report, _ = both
    blocks = report["blocks"]
    workspace = len(report["fillings"]) - 1
    for ns in range(0, report["step_ns"], max(report["step_ns"] // 50, 1)):
        there = sorted(
            (blocks["offset"][i], blocks["bytes"][i])
            for i in range(len(blocks["bytes"]))
            if blocks["begin_ns"][i] < ns < blocks["end_ns"][i]
            and blocks["filling"][i] != workspace
        )
        ends = [offset + size for offset, size in there]
        assert all(end <= offset for end, (offset, _) in zip(ends, there[1:], strict=False))


def test_what_was_evicted_says_for_whom(both):
    report, run = both
    evicted = report["evicted_blocks"]
    assert run["evictions"] > 0
    # An eviction at a moment at which nothing else happens leaves nothing to draw.
    assert 0 < len(evicted["block"]) <= run["evictions"]
    assert all(len(column) == len(evicted["block"]) for column in evicted.values())
    assert all(report["places"][it]["op"] for it in evicted["for_place"])
    assert sum(it > 0 for it in evicted["for_bytes"]) > len(evicted["block"]) / 2
    assert all(it > 0 for it in evicted["return_ns"])
    again = report["fillings"].index("recomputed")
    blocks = report["blocks"]
    for i, filling in enumerate(blocks["filling"]):
        if filling == again and blocks["storage"][i] > 0:
            assert blocks["again"][i] > 0


def test_memory_over_time_is_within_the_budget(both):
    report, run = both
    held = [sum(column) for column in zip(*report["moments"]["held"], strict=True)]
    needed = report["moments"]["needed"]
    assert len(held) == len(needed) == 1200
    assert max(held) == report["fullest"]["bytes"] <= run["most_held_bytes"] <= run["budget_bytes"]
    assert max(needed) == run["peak_bytes"]
    fullest = report["fullest"]
    assert sum(fullest["held"]) == fullest["bytes"]
    for group in ("ops", "modules"):
        assert sum(it["bytes"] for it in fullest[group]) == fullest["bytes"]


def test_the_floor_is_explained(both, coop_sim):
    report, _ = both
    tightest = report["tightest"]
    assert tightest["budget_bytes"] < report["smallest_budget_bytes"] < report["budget_bytes"]
    held = sum(it["bytes"] for it in tightest["held"])
    assert held + tightest["free_bytes"] == tightest["budget_bytes"]
    (floor,) = [text for text in report["advice"] if "the floor is set" in text]
    assert "These 3 tensors cannot go: " in floor
    assert tightest["largest"][0]["title"] in floor or tightest["largest"][1]["title"] in floor


def test_names_say_what_a_block_is(coop_sim, tmp_path):
    lines = (
        "coop-trace 1",
        "name 1 parameter fc.weight",
        "source 0 4194304 1",
        "name 2 state fc.weight.exp_avg",
        "source 1 1048576 2",
        "source 2 1048576",
        "step",
        "name 3 aten::mm",
        "name 4 layers.3.fc",
        "call 3 4 100 reads 0 2 makes 3:2097152",
        "name 5 gradient fc.weight",
        "call 3 4 100 reads 3 makes-source 4:1048576:5",
        "call 3 4 100 reads 3 makes-source 5:1048576",
        "end 7",
    )
    path = tmp_path / "named.coop"
    path.write_text("".join(f"{line}\n" for line in lines))
    report = json.loads(coop_sim.text("report", path, "--ratio", "1.2"))
    blocks, fillings = report["blocks"], report["fillings"]
    found = {
        blocks["storage"][i] - 1: (
            fillings[filling],
            report["places"][blocks["place"][i]]["module"],
        )
        for i, filling in enumerate(blocks["filling"])
    }
    assert found == {
        0: ("parameters and buffers", ""),
        1: ("optimizer state", ""),
        2: ("from before the step, or from outside", ""),
        3: ("activations, which can be recomputed", "layers.3.fc"),
        4: ("gradients", "layers.3.fc"),
        5: ("made in the step, must stay", "layers.3.fc"),
    }
    assert report["has_modules"]
    modules = {it["title"]: it["bytes"] for it in report["fullest"]["modules"]}
    assert modules == {"layers.*.fc": 4 << 20, "fc": 5 << 20, "": 1 << 20}


def test_what_has_no_names_says_what_it_may_be(both):
    report, _ = both
    before = [it for it in report["fillings"] if "before" in it]
    assert before == ["there before: parameters, optimizer state, batches"]
    assert before[0] in {it["title"] for it in report["fullest"]["ops"]}


def test_the_last_step_is_shown(coop_sim, small_trace):
    whole = json.loads(coop_sim.text("report", small_trace, "--ratio", ".8"))
    first = json.loads(coop_sim.text("report", small_trace, "--ratio", ".8", "--steps", 1))
    assert (len(whole["all_steps"]), len(first["all_steps"])) == (2, 1)
    for report in (whole, first):
        step = report["all_steps"][-1]
        length = step["base_ns"] + step["recomputed_ns"]  # to move blocks takes none of the clock's
        assert report["step_ns"] == pytest.approx(length, abs=TINY)


def test_what_has_no_steps_is_called_none(coop_sim):
    """A log is a step if it is run several times."""
    words = ("report", RESNET, "--inplace", "--ratio", ".5")
    all_of_it = json.loads(coop_sim.text(*words))
    last = json.loads(coop_sim.text(*words, "--steps", 2))
    assert (all_of_it["has_steps"], last["has_steps"]) == (False, True)
    assert all_of_it["advice"][0].startswith("It takes ")
    assert last["advice"][0].startswith("A step takes ")


def test_much_more_time_is_counted_in_times(coop_sim, tmp_path):
    """One tensor that takes long to make is read again and again, and between that evicted."""
    size = 4 << 20
    lines = ["coop-trace 1", f"source 0 {size}", "name 1 slow", "name 2 quick"]
    lines += [f"call 1 0 1000000 reads 0 makes 1:{size}"]
    for i in range(2, 62, 3):
        lines += [f"call 2 0 1 reads 0 makes {i}:{size}", f"call 2 0 1 reads {i} makes {i + 1}:512"]
        lines += [f"release {i}", f"call 2 0 1 reads 1 makes {i + 2}:512"]
    path = tmp_path / "thrashes.coop"
    path.write_text("".join(f"{line}\n" for line in [*lines, f"end {len(lines) - 3}"]))
    report = json.loads(coop_sim.text("report", path, "--budget", "9MiB"))
    assert report["overhead"] > 10
    assert re.match(r"It takes \d+ times more time: ", report["advice"][0])


def test_what_does_not_fit_is_shown_up_to_there(coop_sim):
    report = json.loads(coop_sim.text("report", RESNET, "--inplace", "--ratio", ".1"))
    assert report["status"] == "out_of_memory"
    assert report["advice"][0].startswith("It does not fit: it ends in ")
    assert report["tightest"]["requested_bytes"] == report["failure"]["requested_bytes"]
    assert len(report["blocks"]["bytes"]) > 0


def test_budget_and_policy_are_those_of_the_recording(coop_sim):
    report = json.loads(coop_sim.text("report", CNN))
    assert (report["policy"], report["budget_bytes"]) == ("coop", 22748866560)
    assert report["advice"][0].startswith("Nothing is lost")
    says = coop_sim.refuses("report", BILSTM)
    assert "give --ratio or --budget" in says
    assert "addresses" in coop_sim.refuses("report", CNN, "--no-fragmentation")
