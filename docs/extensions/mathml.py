"""Formulas as MathML, which browsers draw by themselves: pages need no network and no script."""

from html import escape

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def mathml(node: nodes.Element, formula: str, block: bool) -> str:
    """MathML of a formula; what cannot be converted is a warning, and shown as it is written."""
    try:
        return tex2mathml(formula.replace(r"\textstyle", ""), as_block=block)  # sums stand in lines as they are
    except MathError as error:
        logger.warning("formula: %s", error, location=node)
        return f"<code>{escape(formula)}</code>"


def write_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(mathml(node, node.astext(), block=False))
    raise nodes.SkipNode


def write_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own, which scrolls where it is too wide."""
    aligned = "\\\\" in node.astext() or "&" in node.astext()
    formula = f"\\begin{{aligned}}{node.astext()}\\end{{aligned}}" if aligned else node.astext()
    translator.body.append(f'<div class="math">{mathml(node, formula, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
