"""Memory maps, and pictures as PNG."""

import re
import struct
import subprocess

import pytest
from coop_sim_checks import BILSTM, RESNET, check_picture, texts


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_memory_map(coop_sim, small_trace, tmp_path, ending):
    path = tmp_path / f"map.{ending}"
    coop_sim.text("run", small_trace, "--policy", "coop", "--ratio", ".7", "--map", path)
    svg = check_picture(path)
    said = texts(svg)
    for label in ("address (", "time (", "long-lived", "computed again", "free", "step 1"):
        assert label in said
    classes = {element.get("class") for element in svg.iter()}
    assert {"block source", "block activation", "evicted-bar", "returned-bar"} <= classes


def test_memory_map_of_a_long_trace_stays_small(coop_sim, tmp_path):
    path = tmp_path / "map.svg"
    coop_sim.text(
        "run", BILSTM, "--inplace", "--policy", "coop", "--ratio", ".4", "--steps", 5, "--map", path
    )
    check_picture(path)
    assert path.stat().st_size < 1_000_000


def test_memory_map_of_a_run_that_does_not_fit(coop_sim, tmp_path):
    path = tmp_path / "map.svg"
    coop_sim.text("run", RESNET, "--inplace", "--policy", "coop", "--ratio", ".1", "--map", path)
    assert "runs out of memory where the map ends" in texts(check_picture(path))


def png_size(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", content[16:24])


def test_png(coop_sim, small_trace, tmp_path):
    png, svg = tmp_path / "map.png", tmp_path / "map.svg"
    for path in (png, svg):
        coop_sim.text("run", small_trace, "--policy", "coop", "--ratio", ".7", "--map", path)
    width, height = (int(check_picture(svg).get(side)) for side in ("width", "height"))
    assert png_size(png) == (2 * width, 2 * height)


def test_png_of_very_many_charts_is_as_large_as_it_can_be(coop_sim, small_trace, tmp_path):
    png = tmp_path / "sweep.png"
    traces = [tmp_path / f"{i}.trace" for i in range(120)]
    for path in traces:
        path.symlink_to(small_trace)
    coop_sim.text("sweep", *traces, "--policies", "lru", "--ratios", ".9", "--plot", png)
    width, height = png_size(png)
    assert 25000 < height <= 32000 and width > 1000


def test_png_without_the_program_that_draws_it(coop_sim, small_trace, tmp_path):
    png = tmp_path / "map.png"
    done = subprocess.run(
        [coop_sim.program, "run", small_trace, "--policy=lru", "--ratio=.9", "--map", png],
        env={"PATH": str(tmp_path)},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stdout, png.exists()) == (2, "", False)
    assert f"{png}: PNG needs the program rsvg-convert" in done.stderr
    assert ".svg and .html need nothing" in done.stderr


def test_pictures_are_the_same_every_time(coop_sim, small_trace, tmp_path):
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        coop_sim.text("run", small_trace, "--policy", "dte", "--ratio", ".7", "--map", path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_names_of_all_kinds_stand_in_pictures(coop_sim, tmp_path):
    trace = tmp_path / "odd <&> \N{SNOWMAN}.trace"
    trace.write_bytes(
        b'coop-trace 1\nname 1 a<b>&"c"\xff\nsource 0 4096 1\nstep\n'
        b"call 1 0 5 reads 0 makes 1:1048576\nend 3\n"
    )
    path = tmp_path / "map.html"
    at = ("run", trace, "--policy", "coop", "--ratio", "1.5", "--map", path)
    assert coop_sim.json(*at)["trace"] == str(trace)
    assert "odd <&> \N{SNOWMAN}" in texts(check_picture(path))


def test_a_long_trace_is_marked_by_steps(coop_sim, tmp_path):
    trace, path = tmp_path / "long.trace", tmp_path / "map.svg"
    coop_sim.text("make", "lstm", "--seed", 3, "--steps", 40, "-o", trace)
    coop_sim.text("run", trace, "--policy", "coop", "--ratio", ".6", "--map", path)
    said = texts(check_picture(path)).splitlines()
    marks = [it for it in said if re.fullmatch(r"step \d+|backward|update", it)]
    steps = [int(it.removeprefix("step ")) for it in marks if it.startswith("step")]
    assert steps == sorted(set(steps)) and steps[0] == 1 and len(steps) > 5
    assert len(steps) == len(marks), "remarks only where steps leave room"


def test_one_overhead_far_from_the_others_does_not_hide_them(coop_sim, tmp_path):
    path = tmp_path / "sweep.svg"
    sweep = ("sweep", RESNET, "--inplace", "--policies", "coop,dte", "--plot", path)
    results = coop_sim.json(*sweep, "--ratios", ".9,.8,.7,.6,.5,.3")["results"]
    most = max(it["overhead"] for it in results)
    assert most > 10, "this is no longer an example"
    said = texts(check_picture(path)).splitlines()
    assert f"{100 * most:.0f}" in said, "what has no place is written down"
    assert "5000" not in said, "the axis is for the others"
