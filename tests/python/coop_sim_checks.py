"""What holds for whatever coop-sim prints and draws."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RESNET = "tests/data/h200/resnet50.log.gz"
SPOS = "tests/data/h200/spos.log.gz"
BILSTM = "tests/data/h200/bilstm.log.gz"
SVG = "{http://www.w3.org/2000/svg}"

STEP_FIGURES = {
    "base_ns": (int, float),
    "total_ns": (int, float),
    "overhead": (int, float),
    "budget_to_halve_bytes": int,
    "fragmentation": (int, float),
    "evictions": int,
    "evicted_bytes": int,
    "moved_bytes": int,
    "moving_ns": (int, float),
    "recomputed_calls": int,
    "searches": int,
    "search_ns": int,
}
RUN_FIELDS = {
    "trace": str,
    "policy": str,
    "status": str,
    "steps": int,
    "budget_bytes": int,
    "peak_bytes": int,
    "most_held_bytes": int,
    **STEP_FIGURES,
}


def check_fields(result):
    assert list(result)[: len(RUN_FIELDS)] == list(RUN_FIELDS)
    for field, kind in RUN_FIELDS.items():
        is_unknown = result["status"] == "out_of_memory" and field in STEP_FIGURES
        assert result[field] is None if is_unknown else isinstance(result[field], kind), field


def check_picture(path: Path) -> ElementTree.Element:
    """It is XML with a title, both grounds, and nothing that is loaded from elsewhere."""
    text = path.read_text()
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    svg = root if root.tag == f"{SVG}svg" else next(root.iter(f"{SVG}svg"))
    assert svg.findtext(f"{SVG}title")
    assert "prefers-color-scheme: dark" in svg.findtext(f"{SVG}style")
    addresses = set(re.findall(r"https?://[^\"' ]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    return svg


def texts(svg) -> str:
    return "\n".join(element.text or "" for element in svg.iter(f"{SVG}text"))
