"""What was measured is shown as it is, failures and all."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from coop.bench.bounds import bound_of, read_bounds
from coop.bench.chart import draw, ticks
from coop.bench.found import MARKS, Found
from coop.bench.goals import missed
from coop.bench.network_tables import in_full
from coop.bench.picture import write_picture
from coop.bench.tables import brief
from measured_cells import CELLS, cell, lost, measured, policy


@pytest.fixture
def found():
    return Found(CELLS)


def rows_of(text, title):
    """By network."""
    part = text[text.index(title) :].split("\n\n")[0].splitlines()
    return {re.split(r"  +", line)[0]: re.split(r"  +", line.rstrip())[1:] for line in part[1:]}


def test_the_short_table(found):
    rows = rows_of(brief(found, read_bounds()), "Overhead")
    assert rows["network"] == [
        *("batch", "plain", "peak", "ratio", "coop", "dtr"),
        *("(lower bound)", "fragmentation", "reserved", "losses"),
    ]
    plain = ["16", "100.0 ms", "20.0 GiB"]
    assert rows["BERT Large"] == [
        *plain, "50%", "7.0%", "34.7%", "6.1%", "0.0%", "100.0%", "equal"
    ]  # fmt: skip
    assert rows["GPT-3 2.7B"] == [*plain, "60%", "5.0%", "4.4%", "0.0%", "100.0%", "equal*"]
    assert rows["SPOS"] == [*plain, "50%", "time", "20.0%", "4.7%", "time", "time", "DIFFER"]


def test_the_other_tables(found):
    text = brief(found, {})
    assert rows_of(text, "Search latency")["BERT Large"] == [
        "50%",
        "0.00 of 0",
        "4.00 of 2",
        "15.0",
    ]
    assert rows_of(text, "Where nothing binds")["BERT Large"] == ["-0.1%", "equal"]
    assert rows_of(text, "Peers")["BERT Large"] == [
        *("28.5% at 39%", "13.8% at 39%", "450.0% at 60%", "-24.0% at 170%", "-15.0% at 105%"),
    ]
    assert rows_of(text, "The smallest ratio")["BERT Large"] == ["31%"]
    assert rows_of(text, "The largest batch that fits into 16.0 GiB")["BERT Large"] == ["13", "41"]
    assert text.startswith("NVIDIA H200; PyTorch 2.11.0; commit abc; 2026-11-16; the middle of 20")


def test_in_full_it_says_why_figures_are_missing(found):
    bert, gpt, spos = in_full(found, read_bounds()).split("\n\n")
    assert [line.split() for line in bert.splitlines()[1:6]] == [
        ["memory", "ratio", "0.5", "0.4"],
        ["Overhead"],
        ["coop", "7.0%", "14.0%"],
        ["dtr", "34.7%", "-"],
        ["(lower", "bound)", "6.1%", "8.3%"],
    ]
    assert "0.4, dtr: does not fit: and why" in bert
    lines = [line.split() for line in bert.splitlines()]
    search = lines.index(["A", "search,", "us"])
    assert lines[search + 1 : search + 3] == [["coop", "0", "0"], ["dtr", "2000", "-"]]
    assert re.search(
        r"^checkpoint +0\.3 s +128\.5 ms +28\.5% +9\.0 GiB +39\.0% +10\.0 GiB", bert, re.M
    )
    assert re.search(r"^  \(lower bound\) +4\.4% +-$", gpt, re.M)
    assert "0.5, coop: timed out: and why" in spos


def test_what_is_short_of_what_is_wanted_is_said(found):
    short = missed(found, read_bounds()).splitlines()
    assert short == [
        "Short of what is wanted",
        "  SPOS: at 50%: timed out",
        "  SPOS: at 50% timed out, where dtr trains",
    ]


def worse(variant="coop", ratio=0.5, network="resnet50", **more):
    cell = policy(network, ratio, variant, more.pop("overhead", 0.05))
    return {**cell, **more}


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([worse(overhead=0.16)], "at 50% 16.0% overhead, wanted at most 15%"),
        ([worse(overhead=0.12)], "at 50% 1.7 times the lower bound, hoped for 1.5"),
        ([worse(fragmentation=0.06)], "at 50% 6.0% fragmentation"),
        ([worse(reserved_bytes=(10 << 30) + 5)], "at 50% 5 bytes over the budget"),
        ([worse(losses="different")], "at 50% losses: different"),
        (
            [worse(overhead=0.06), worse("dte", overhead=0.055)],
            "at 50% no less overhead than dte, 6.0% beside 5.5%",
        ),
        (
            [worse(search_s=0.001), worse("dtr", overhead=0.2, search_s=0.004)],
            "at 50% searches 4.0 times as fast as dtr's",
        ),
        (
            [cell("resnet50", "not binding", None, "coop", **measured(0.02))],
            "where nothing binds 2.0% overhead, wanted at most 1%",
        ),
    ],
)
def test_each_that_is_short(cells, says):
    assert f"  ResNet-50: {says}" in missed(Found(cells), read_bounds()).splitlines()


def test_every_status_has_a_mark(found):
    everything = [lost("spos", 0.5, name, status) for name, status in enumerate(MARKS)]
    for number, each in enumerate(everything):
        each["variant"] = f"policy{number}"
    row = rows_of(brief(Found(everything), {}), "Overhead")["SPOS"]
    assert row[1 : 1 + len(MARKS)] == list(MARKS.values())


def test_bounds_are_those_of_recorded_networks_on_a_gpu():
    bounds = read_bounds()
    assert bound_of(bounds, "resnet50", "cuda", 0.5) == "6.9%"
    assert bound_of(bounds, "gpt-2.7b", "cuda", 0.5) == "-"
    assert bound_of(bounds, "resnet50", "cpu", 0.5) == ""
    assert bound_of(bounds, "unet", "cuda", 0.5) == ""


def test_the_picture_has_all_points(found, tmp_path):
    path = tmp_path / "bench.svg"
    write_picture(path, draw(found, read_bounds()), "")
    root = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    tips = [it.text for it in root.iter(f"{space}title")]
    assert "coop in 50% of the memory: 7.00 %" in tips
    assert "coop@checkpoint in 39% of the memory: 13.80 %" in tips
    assert "compile@0.5 in 105% of the memory: -15.00 %" in tips
    assert "dtr at 0.4: does not fit" in tips
    texts = [it.text for it in root.iter(f"{space}text")]
    assert "450%" in texts  # beyond the frame, and said so
    assert {"overhead (%)", "fragmentation (%)", "search latency a step (ms)"} <= set(texts)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    for dot in root.iter(f"{space}circle"):
        assert 0 < float(dot.get("cx")) < width
        assert 0 < float(dot.get("cy")) < height


@pytest.mark.parametrize(("least", "most"), [(0, 41), (-24, 60), (0, 0.003), (-0.5, 1200)])
def test_ticks_are_round_and_inside(least, most):
    found = ticks(least, most)
    assert 2 <= len(found) <= 8
    assert 0 in found
    assert all(least <= it <= most for it in found)
