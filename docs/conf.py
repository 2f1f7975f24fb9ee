"""Settings of Sphinx; `make docs` builds the pages."""

import html
import re

from docutils import nodes
from docutils.parsers import rst

import repertory

project = 'Repertory'
version = release = repertory.__version__
author = 'The authors of Repertory'

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
exclude_patterns = ['build']
html_theme = 'alabaster'
html_theme_options = {'description': 'Reinforcement-learning building blocks'}
myst_heading_anchors = 3

# What is drawn on GitHub is drawn here, too, where the network is reached;
# elsewhere its text is shown.
myst_fence_as_directive = {'mermaid'}
html_js_files = [
  'https://cdn.jsdelivr.net/npm/mermaid@11.4.1/dist/mermaid.min.js'
]

autoclass_content = 'both'  # Arguments are told of in the constructor.
autodoc_default_options = {
  'members': True,
  'member-order': 'bysource',
  'show-inheritance': True,
}
autodoc_typehints = 'signature'
autodoc_typehints_format = 'short'
python_maximum_signature_line_length = 72
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


# Text in backticks: code already, a role's, a link's, or neither. And bars
# outside of it.
_MARKED = re.compile(r'``.+?``|(?::\w+)*:`[^`]+`|`[^`]+`_|`([^`]+)`|(\|)')


def _mark_names(app, what, name, obj, options, lines) -> None:
  """Shows what is in single backticks as code; Sphinx wants two of them.

  Bars are shown as they are: |x| is an absolute value, and to Sphinx the name
  of a text to put there. In modules they are parts of drawings.
  """
  del app, name, obj, options

  def mark(match: re.Match) -> str:
    if match[2]:
      return '|' if what == 'module' else '\\|'
    # The escaped space lets a plural's s follow.
    return f'``{match[1]}``\\ ' if match[1] else match[0]

  lines[:] = [
    _MARKED.sub(mark, line)
    for line in lines
    if not line.startswith('Create new instance of')  # Of named tuples.
  ]


def _quote_drawings(app, what, name, obj, options, lines) -> None:
  """Keeps the line breaks of indented drawings in module docstrings."""
  del app, name, obj, options
  if what != 'module':
    return
  starts = [
    i
    for i in range(1, len(lines))
    if lines[i].startswith('    ') and not lines[i - 1]
  ]
  for start in reversed(starts):
    lines[start:start] = ['::', '']


def _skip_fields(app, what, name, obj, skip, options) -> bool:
  """Leaves out what named tuples say of each field: the class says more."""
  del app, what, name, options
  is_field = (getattr(obj, '__doc__', '') or '').startswith('Alias for field')
  return skip or is_field


class _Mermaid(rst.Directive):
  """A graph in Mermaid's words."""

  has_content = True

  def run(self) -> list[nodes.Node]:
    text = html.escape('\n'.join(self.content))
    return [nodes.raw('', f'<pre class="mermaid">{text}</pre>', format='html')]


def setup(app) -> None:
  """Registers the hooks above; called by Sphinx."""
  app.add_directive('mermaid', _Mermaid)
  app.connect('autodoc-process-docstring', _mark_names)
  app.connect('autodoc-process-docstring', _quote_drawings)
  app.connect('autodoc-skip-member', _skip_fields)
