"""How Sphinx builds the manual: ``make docs``."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

from ocf import __version__  # noqa: E402

project = "ocf"
author = "The ocf developers"
copyright = author  # noqa: A001, Sphinx wants this name
version = release = __version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "ocf_reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "smoke-report", "gallery/*.ipynb", "gallery/*.py", "tutorial/*.ipynb", "tutorial/*.py"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = True

# -- reference ---------------------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# of classes with parts that only other rooms of the house use, what is for users
autosummary_context = {
    "shown": {
        "Explainer": "explain, counterfactual_regions, ask, problem, cells, alternatives, save, load, model, space",
        "LinearExplainer": "explain, ask, save, load, model, space",
    }
}
add_module_names = False
default_role = "literal"  # docstrings put names into single backquotes

# -- gallery -----------------------------------------------------------------------------------------------------
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorial", "../examples/gallery"],
    "gallery_dirs": ["tutorial", "gallery"],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "plot_gallery": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "copyfile_regex": r".*\.rst",
    "notebook_images": False,
}

# -- pages -------------------------------------------------------------------------------------------------------
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "ocf"
html_static_path = ["_static"]
html_css_files = ["ocf.css"]
html_extra_path = ["smoke-report"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = "$ "
