"""Formulae as MathML, made by docutils when the site is built: no script, nothing to fetch."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
REPAIRS = (
    (re.compile(r"\\(t?frac)(\d)(\d)"), r"\\\1{\2}{\3}"),  # docutils reads 12 as one number
    (
        re.compile(r"(\\(?:log|cos|sin|det|exp)\b)\s*(?=[\\\w])(?!\\left)"),
        r"\1\\, ",
    ),  # and log u as logu
)


def markup(node: nodes.Element, as_block: bool) -> str:
    """The formula as MathML; one that cannot be read is a warning, and shown as it was written."""
    formula = node.astext()
    for found, better in REPAIRS:
        formula = found.sub(better, formula)
    try:
        return tex2mathml(formula, as_block=as_block)
    except MathError as error:
        logger.warning("formula: %s", error, location=node)
        return nodes.unescape(node.astext())


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(markup(node, as_block=False))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula in a line of its own."""
    translator.body.append(f'<div class="math">{markup(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes it known as the renderer ``mathml``."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
