"""Links that lead somewhere on GitHub, to files that the site has as pages of its own."""

import re

from sphinx.application import Sphinx

UP = r"\]\(((?:\.\./)*)\.\./"  # out of docs/, from a page at any depth
PAGES = (
    (re.compile(UP + r"README\.md"), r"](\1index.md"),
    (re.compile(UP + r"examples/gallery/README\.rst"), r"](\1gallery/index.rst"),
    (re.compile(UP + r"examples/gallery/(plot_\w+)\.py"), r"](\1gallery/\2.rst"),
)


def redirect(app: Sphinx, name: str, source: list[str]) -> None:
    """Called with the text of each page before it is read."""
    for link, page in PAGES:
        source[0] = link.sub(page, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Listens to the reader."""
    app.connect("source-read", redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
