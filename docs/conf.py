"""Sphinx: Markdown by MyST, the furo theme, the reference drawn from docstrings."""

from __future__ import annotations

import prismaio

project = "PRISMA"
author = "the PRISMA contributors"
project_copyright = author
version = release = prismaio.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = f"PRISMA {version}"
exclude_patterns = ["_build"]
