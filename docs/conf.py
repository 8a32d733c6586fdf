"""The documentation site: ``make docs`` builds it into docs/_build/html, without a network."""

import sys
import warnings
from pathlib import Path

import torch

from cida import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
torch.set_num_threads(1)  # the gallery trains, and should look the same everywhere

project = "cida"
author = "The cida authors"
copyright = "the cida authors, MIT licence"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = [
    "links_to_the_repository",
    "math_in_mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "gallery/*.ipynb",
    "gallery/*.py",
    "sg_execution_times.rst",
]
nitpicky = True

# --- Markdown: the same files are read on GitHub ------------------------------------------------

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
html_math_renderer = "mathml"

# --- looks ------------------------------------------------

html_theme = "furo"
html_title = f"cida {__version__}"
html_static_path = ["_static"]
html_css_files = ["cida.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f8b",
        "color-brand-content": "#1f5f8b",
        "color-brand-visited": "#1f5f8b",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc0ea",
        "color-brand-content": "#7cc0ea",
        "color-brand-visited": "#7cc0ea",
    },
}
copybutton_exclude = ".linenos, .gp, .go"

# --- the reference: a page for each public package, of what it lists in __all__ ------------------

autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

default_role = "literal"  # docstrings say `Name` for a name in the code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    # other libraries, whose pages are not fetched, and types that signatures name in passing
    (r"py:.*", r"(torch|nn|numpy|collections|os|sklearn|pathlib)\..*"),
    (r"py:class", r"cida\.\w+\.\w+(\.\w+)?|Callback|Capacity|CoordinateMode"),  # they have no page
]
python_maximum_signature_line_length = 90

# --- the gallery ------------------------------------------------

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "plot_gallery": True,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": None,
    "abort_on_example_error": True,
}


def skip_member(app, what, name, member, skip, options):
    """Leave out what torch and scikit-learn add to every class of theirs."""
    is_routing = name.startswith("set_") and name.endswith("_request")
    return True if is_routing or name in ("forward", "extra_repr") else None


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_member)
