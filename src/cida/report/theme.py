"""The colours of a report, for a light and for a dark page."""

from __future__ import annotations

import re
from importlib.resources import files

__all__ = [
    "DARK_COLORS",
    "LIGHT_COLORS",
    "N_LINE_STYLES",
    "index_color",
    "read_asset",
    "render_chart_css",
    "render_page_css",
]

N_LINE_STYLES = 12  # s0 ... s11: colours of lines, all at least 3:1 against the page

LIGHT_COLORS = {
    "ink": "#1c2430",
    "soft": "#566170",
    "paper": "#ffffff",
    "card": "#f6f8fa",
    "rule": "#d8dee6",
    "link": "#1d57a8",
    "red": "#c8322b",
    "blue": "#2c62b4",
    "frame": "#1c7a45",
    "band": "#e3f1e8",
    "full": "#1d4f91",
    "none": "#eef1f5",
    "s0": "#6b7684",
    "s1": "#bd6c06",
    "s2": "#7b4bb3",
    "s3": "#0e8a7c",
    "s4": "#c8322b",
    "s5": "#2c62b4",
    "s6": "#7d7a0b",
    "s7": "#c2388b",
    "s8": "#8a5a3c",
    "s9": "#3d8b2f",
    "s10": "#1587b0",
    "s11": "#3a3f47",
}
DARK_COLORS = {
    "ink": "#e6eaf0",
    "soft": "#a9b4c1",
    "paper": "#12161c",
    "card": "#1b212a",
    "rule": "#343d49",
    "link": "#8ab6ff",
    "red": "#ff7a70",
    "blue": "#7fb0ff",
    "frame": "#55cf8c",
    "band": "#1d3529",
    "full": "#8fbcff",
    "none": "#262e39",
    "s0": "#98a3b1",
    "s1": "#f0a94b",
    "s2": "#bb93ee",
    "s3": "#4fd0bf",
    "s4": "#ff7a70",
    "s5": "#7fb0ff",
    "s6": "#cfc94a",
    "s7": "#f58cc8",
    "s8": "#c99a7a",
    "s9": "#86d873",
    "s10": "#5cc6ee",
    "s11": "#e6eaf0",
}

# Nine stops of viridis: even steps of u look even, in grey and to colour-blind eyes too.
_VIRIDIS_STOPS = (
    "440154",
    "472d7b",
    "3b528b",
    "2c728e",
    "21918c",
    "28ae80",
    "5ec962",
    "addc30",
    "fde725",
)


def index_color(share: float) -> str:
    """The colour of an index value, given as its share of the whole range."""
    position = min(max(share, 0.0), 1.0) * (len(_VIRIDIS_STOPS) - 1)
    low = min(int(position), len(_VIRIDIS_STOPS) - 2)
    weight = position - low
    pair = [[int(stop[k : k + 2], 16) for k in (0, 2, 4)] for stop in _VIRIDIS_STOPS[low : low + 2]]
    return "#" + "".join(f"{round(a + (b - a) * weight):02x}" for a, b in zip(*pair, strict=True))


def read_asset(name: str) -> str:
    """A file that reports are made with."""
    return files("cida.report").joinpath("assets", name).read_text(encoding="utf-8")


def render_chart_css(colors: dict[str, str] | None = None) -> str:
    """The style of all charts; with ``colours`` they are written out, for a file of its own."""
    lines = [_chart_css()]
    for number in range(N_LINE_STYLES):
        name = f"s{number}"
        lines.append(f".{name} {{ stroke: var(--{name}); }}")
        lines.append(f".spread.{name} {{ fill: var(--{name}); }}")
        lines.append(f"svg.chart text.{name}, svg.file text.{name} {{ fill: var(--{name}); }}")
    text = "\n".join(lines)
    if colors is None:
        return text
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda found: colors[found[1]], text)


def _chart_css() -> str:
    return read_asset("chart.css")


def render_page_css() -> str:
    """The style of the page: light or dark as the system has it, or as the reader chose."""
    light, dark = (_css_variables(colours) for colours in (LIGHT_COLORS, DARK_COLORS))
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f"  :root:not([data-theme='light']) {{ color-scheme: dark; {dark} }}\n}}\n"
        f"@media screen {{ :root[data-theme='dark'] {{ color-scheme: dark; {dark} }} }}\n"
        f"{read_asset('page.css')}\n{render_chart_css()}"
    )


def _css_variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colors.items())
