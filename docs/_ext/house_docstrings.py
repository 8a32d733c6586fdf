"""Sections of arguments in our docstrings, ``name : text``, as lists that Sphinx can set."""

import re

from sphinx.application import Sphinx

SECTIONS = ("Parameters", "Arguments")
ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) ?: (?P<text>.*)$")


def listed(lines: list[str]) -> list[str]:
    """The lines of one docstring, with each section of arguments as a list of definitions."""
    out: list[str] = []
    inside = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in SECTIONS and below and set(below) == {"-"}:
            inside = True
            out += [f".. rubric:: {line}", ""]
        elif inside and line and set(line) == {"-"}:
            continue
        elif inside and (entry := ENTRY.match(line)):
            names = ", ".join(f"``{name}``" for name in entry["names"].split(", "))
            out += [names, f"    {entry['text']}"]
        else:
            inside = inside and (not line or line.startswith(" "))
            out.append(line)
    return out


def process(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]):
    """Called by autodoc for each docstring."""
    lines[:] = listed(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listens to autodoc."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
