"""The report in a real browser."""

import re
import zlib
from functools import lru_cache

import pytest
from browser import look_at, needs_browser, print_pdf
from command_line import COOP, ROOT, run

pytestmark = needs_browser

CNN = "tests/data/cpu/resnet50.coop.gz"


@pytest.fixture(scope="module")
def draw(tmp_path_factory, coop_sim):
    @lru_cache
    def draw(*words):
        page = tmp_path_factory.mktemp("page") / "mem.html"
        done = run(
            [*COOP, "report", "-o", page, *words], ROOT / "tests", COOP_SIM=str(coop_sim.program)
        )
        assert done.code == 0, done.err
        return page

    return draw


# An evicted block that is large enough to be pointed at, then a place where there is nothing.
POINT = """
const [chart, map] = kViews[0].drawings;
const at = (drawing, x, y) => {
  const { left, top } = drawing.canvas.getBoundingClientRect();
  const where = { clientX: left + x, clientY: top + y };
  drawing.canvas.dispatchEvent(new PointerEvent("pointermove", where));
  const tip = document.getElementById("tip");
  return tip.style.display === "none" ? "" : tip.innerText;
};
const boxes = [...map.eviction.keys()].map((block) => map.box(block));
const [x, y, width, height] = boxes.sort((a, b) => b[2] * b[3] - a[2] * a[3])[0];
const text = document.body.innerText;
const pixels = map.pen.getImageData(0, 0, map.canvas.width, map.canvas.height).data;
const colours = new Set();
for (let i = 0; i < pixels.length; i += 4) {
  colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
}
const block = at(map, x + width / 2, y + height / 2);
const nothing = at(map, 2, 2);
const moment = at(chart, chart.width / 2, 100);
const middle = map.view.length / 2;
map.view.show(middle, middle * 1.2);
const isBackOffered = !document.querySelector(".tools button").disabled;
document.querySelector(".tools button").click();
const { isWhole } = map.view;
return { text, block, nothing, moment, colours: colours.size, isBackOffered, isWhole };
"""


def test_a_page_tells_what_there_is_and_what_is_pointed_at(draw):
    seen = look_at(draw(f"../{CNN}", "--ratio", ".6"), POINT)
    assert seen.complaints == []
    page = seen.answer
    for heading in (
        "Memory of resnet50",
        "What fills memory",
        "Where it lies",
        "What is recomputed",
        "What sets the floor",
    ):
        assert heading in page["text"]
    assert "60.0% of the 904.9 MiB that it takes without coop" in page["text"]
    assert "object Object" not in page["text"]
    assert "undefined" not in page["text"]
    assert "NaN" not in page["text"]
    assert "aten::" in page["block"]
    assert "then evicted" in page["block"]
    why = r"to make room for \d.* for aten::|ahead of need, before aten::"
    assert re.search(why, page["block"])
    assert page["nothing"] == ""
    assert "without coop" in page["moment"]
    assert page["colours"] > 6
    assert page["isBackOffered"] and page["isWhole"]


WORDS = """
const map = kViews[0].drawings[1];
const width = (text) => map.pen.measureText(text).width;
const fitting = (text) => map.fitting(["bert.", "layer.", "0: ", "softmax"], width(text));
return {
  more: [.128, 9.99, 10, 2284.6].map(asMore),
  fitting: ["bert.layer.0: softmax", "layer.0: softmax", "softmax,", "softma", "s"].map(fitting),
};
"""


def test_words_fit_where_they_are(draw):
    seen = look_at(draw(f"../{CNN}", "--ratio", ".6"), WORDS)
    assert seen.complaints == []
    assert seen.answer["more"] == ["12.8%", "999.0%", "10 times", "2,285 times"]
    whole, cut, last, short, nothing = seen.answer["fitting"]
    assert (whole, cut, last) == ("bert.layer.0: softmax", "layer.0: softmax", "softmax")
    assert re.fullmatch(r"soft\w?…", short)
    assert nothing == ""


def test_many_blocks_are_drawn_and_make_no_large_file(draw, tmp_path, coop_sim):
    trace = tmp_path / "long.coop"
    coop_sim.text("make", "lstm", "--seed", 1, "--steps", 1, "--layers", 2700, "-o", trace)
    page = draw(trace, "--ratio", "1.1")
    assert page.stat().st_size < 15_000_000
    seen = look_at(page, "return kViews[0].drawings[1].count")
    assert seen.complaints == []
    assert seen.answer >= 100_000


NARROW = """
const sections = [...document.querySelectorAll(".runs > section")];
return {
  overflow: document.documentElement.scrollWidth - innerWidth,
  sections: sections.length,
  compared: document.querySelector(".compared").innerText,
  tops: sections.map((it) => it.getBoundingClientRect().top),
};
"""


def test_two_runs_are_side_by_side_or_one_below_the_other(draw):
    page = draw(f"../{CNN}", "../tests/data/h200/spos.log.gz", "--inplace", "--ratio", ".7")
    wide = look_at(page, NARROW)
    narrow = look_at(page, NARROW, width=480)
    for seen in (wide, narrow):
        assert seen.complaints == []
        assert seen.answer["overflow"] <= 0
        assert seen.answer["sections"] == 2
        assert "resnet50, coop" in seen.answer["compared"]
        assert "spos, coop" in seen.answer["compared"]
    assert wide.answer["tops"][0] == wide.answer["tops"][1]
    assert narrow.answer["tops"][0] < narrow.answer["tops"][1]


EVIL = "<script>window.evil=1</script><img src=x onerror=window.evil=1>&lt;b&gt;"


def test_names_are_only_ever_text(draw, tmp_path):
    lines = (
        "coop-trace 1",
        f"name 1 parameter {EVIL}",
        "source 0 4194304 1",
        f"name 2 op{EVIL}",
        f"name 3 module{EVIL}",
        "call 2 3 100 reads 0 makes 1:4194304",
        f"name 4 remark{EVIL}",
        "annotate 4",
        "call 2 3 100 reads 1 makes 2:4194304",
        "end 4",
    )
    path = tmp_path / f"{EVIL.replace('/', ' ')}.coop"
    path.write_text("".join(f"{line}\n" for line in lines))
    script = """
    const map = kViews[0].drawings[1];
    const tips = [];
    for (let i = 0; i < map.count; ++i) {
      const [x, y, width, height] = map.box(i);
      const { left, top } = map.canvas.getBoundingClientRect();
      map.point({ offsetX: x + width / 2, offsetY: y + height / 2, clientX: 9, clientY: 9 });
      tips.push(document.getElementById("tip").innerText);
    }
    return { tips, text: document.body.innerText, evil: window.evil ?? 0, title: document.title,
             elements: document.querySelectorAll("img, b script, main script").length };
    """
    seen = look_at(draw(path, "--ratio", "1.1"), script)
    assert seen.complaints == []
    assert (seen.answer["evil"], seen.answer["elements"]) == (0, 0)
    assert any(f"parameter {EVIL}" in tip for tip in seen.answer["tips"])
    assert any(f"op{EVIL} in module{EVIL}" in tip for tip in seen.answer["tips"])
    assert EVIL.replace("/", " ") in seen.answer["title"]


def test_it_can_be_printed(draw, tmp_path):
    """Charts that are drawn for a wide window would be squeezed, with all that is written there."""
    pdf = tmp_path / "mem.pdf"
    print_pdf(draw(f"../{CNN}", "--ratio", ".6"), pdf)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 20_000
    scales = scales_in(pdf)
    assert len(scales) > 10
    assert [(x, y) for x, y in scales if x != pytest.approx(y, rel=0.01)] == []


def scales_in(pdf):
    """By which what is drawn is made wider, and higher."""
    data = pdf.read_bytes()
    text = b""
    for begin in re.finditer(rb"/FlateDecode[^>]*/Length (\d+)>> stream\n", data):
        text += zlib.decompress(data[begin.end() : begin.end() + int(begin[1])])
    return [
        (abs(float(x)), abs(float(y)))
        for x, y in re.findall(rb"^(\S+) 0 0 (\S+) \S+ \S+ cm$", text, re.MULTILINE)
    ]
