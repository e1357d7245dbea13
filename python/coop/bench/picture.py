"""Pictures: shapes of classes, whose looks are in one style sheet, as SVG, a page or PNG.

Drawn here and not by a library: one that draws is larger than coop, and PyTorch brings none along.
Looks are those of coop-sim's pictures.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from html import escape
from pathlib import Path

Point = tuple[float, float]

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1c2430; }
.title { font-size: 20px; font-weight: 600; }
.heading { font-size: 15px; font-weight: 600; }
.faint { fill: #5a6675; }
.small { font-size: 11px; fill: #5a6675; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.ground { fill: #ffffff; }
.frame { fill: none; stroke: #9aa5b1; }
.grid { stroke: #dde2e8; }
.zero { stroke: #9aa5b1; }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.cross { fill: none; stroke-width: 1.6; }
.reference { stroke: #5a6675; stroke-width: 1.5; stroke-dasharray: 5 4; fill: none; }
"""
_LIGHT = ("#1f6fb5", "#d1495b", "#2a9d63", "#8f5fbf", "#c98a00", "#00889b", "#5f6b7a")
_DARK = ("#5fb0f2", "#ff7a8a", "#5fd394", "#c39bf0", "#f0bf4c", "#4fd0e0", "#a5b0bd")
_IN_THE_DARK = """
  text { fill: #e4e8ee; }
  .faint, .small { fill: #9aa7b5; }
  .ground { fill: #14181f; }
  .frame, .zero { stroke: #5b6673; }
  .grid { stroke: #2b323c; }
  .reference { stroke: #9aa7b5; }
"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width"/>
<meta name="color-scheme" content="light dark"/>
<title>{title}</title>
<style>
body {{ margin: 2em auto; max-width: 1240px; padding: 0 1em; background: #ffffff; color: #1c2430;
  font: 15px system-ui, sans-serif; }}
svg {{ max-width: 100%; height: auto; }}
pre {{ font: 13px ui-monospace, monospace; overflow-x: auto; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14181f; color: #e4e8ee; }} }}
</style>
</head>
<body>
{svg}<pre>{text}</pre>
</body>
</html>
"""


def _colours(colours: Iterable[str]) -> str:
    return "".join(
        f".s{i} {{ stroke: {colour}; }} .f{i} {{ fill: {colour}; }}\n"
        for i, colour in enumerate(colours)
    )


COLOURS = len(_LIGHT)


class Picture:
    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.title = title
        self._size = f'width="{_number(width)}" height="{_number(height)}"'
        self._size += f' viewBox="0 0 {_number(width)} {_number(height)}"'
        self._description = description
        self._body: list[str] = []
        self.box((0, 0), width, height, "ground")

    def box(self, at: Point, width: float, height: float, looks: str) -> None:
        self._add("rect", looks, x=at[0], y=at[1], width=width, height=height)

    def line(self, start: Point, end: Point, looks: str) -> None:
        self._add("line", looks, x1=start[0], y1=start[1], x2=end[0], y2=end[1])

    def polyline(self, points: Iterable[Point], looks: str) -> None:
        self._add(
            "polyline", looks, points=" ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        )

    def dot(self, at: Point, radius: float, looks: str, tip: str) -> None:
        """`tip`: shown to whoever points at it."""
        self._add("circle", looks, tip, cx=at[0], cy=at[1], r=radius)

    def diamond(self, at: Point, radius: float, looks: str, tip: str) -> None:
        (x, y), r = at, radius
        corners = ((x, y - r), (x + r, y), (x, y + r), (x - r, y))
        path = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in corners) + "Z"
        self._add("path", looks, tip, d=path)

    def cross(self, at: Point, radius: float, looks: str, tip: str) -> None:
        x, y, d = _number(at[0] - radius), at[1], _number(2 * radius)
        path = f"M{x} {_number(y - radius)}l{d} {d}M{x} {_number(y + radius)}l{d} -{d}"
        self._add("path", f"cross {looks}", tip, d=path)

    def text(self, at: Point, text: str, looks: str) -> None:
        where = f'x="{_number(at[0])}" y="{_number(at[1])}"'
        self._body.append(f'<text class="{looks}" {where}>{escape(text)}</text>\n')

    def _add(self, name: str, looks: str, tip: str = "", **attributes: float | str) -> None:
        words = "".join(
            f' {key}="{value if isinstance(value, str) else _number(value)}"'
            for key, value in attributes.items()
        )
        inside = f"><title>{escape(tip)}</title></{name}>" if tip else "/>"
        self._body.append(f'<{name} class="{looks}"{words}{inside}\n')

    def as_svg(self) -> str:
        style = f"{_STYLE}{_colours(_LIGHT)}@media (prefers-color-scheme: dark) {{"
        style += f"{_IN_THE_DARK}{_colours(_DARK)}}}\n"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {self._size} role="img">\n'
            f"<title>{escape(self.title)}</title>\n<desc>{escape(self._description)}</desc>\n"
            f"<style>{style}</style>\n{''.join(self._body)}</svg>\n"
        )


def _number(number: float) -> str:
    """A hundredth of a pixel is fine enough."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def write_picture(path: Path, picture: Picture, text: str) -> None:
    """By how its name ends. A page has the text beneath the picture."""
    svg = picture.as_svg()
    if path.suffix == ".png":
        command = ["rsvg-convert", "--zoom=2", "--output", str(path)]
        subprocess.run(command, input=svg, text=True, check=True)
    elif path.suffix == ".html":
        path.write_text(_PAGE.format(title=escape(picture.title), svg=svg, text=escape(text)))
    else:
        path.write_text(svg)
