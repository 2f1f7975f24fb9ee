"""Settings of Sphinx; `make docs` builds the pages."""

import importlib.resources
import pathlib
import re
import sys
from collections.abc import Callable

import math_core
import mermaidx
from docutils import nodes, statemachine
from docutils.parsers import rst

import repertory

sys.path.append(str(pathlib.Path(__file__).parent))
import tables

project = 'Repertory'
version = release = repertory.__version__
author = project_copyright = 'The authors of Repertory'

extensions = [
  'myst_parser',
  'sphinx.ext.autodoc',
  'sphinx.ext.napoleon',
  'sphinx_copybutton',
]
exclude_patterns = ['build']
html_theme = 'furo'
html_title = f'Repertory {release}'
html_static_path = ['_static']
html_css_files = ['repertory.css']
html_show_sourcelink = False
pygments_style = 'a11y-light'
pygments_dark_style = 'a11y-dark'
copybutton_exclude = '.linenos, .gp, .go'

# What GitHub shows as formulas and drawings is shown so here, too.
myst_enable_extensions = ['colon_fence', 'dollarmath']
myst_fence_as_directive = {'math', 'mermaid'}
myst_heading_anchors = 3
html_math_renderer = 'mathml'

autoclass_content = 'both'  # Constructors document arguments.
autodoc_default_options = {
  'members': True,
  'member-order': 'bysource',
  'show-inheritance': True,
}
autodoc_typehints = 'signature'
autodoc_typehints_format = 'short'
python_maximum_signature_line_length = 72
add_module_names = False  # They stand above.
toc_object_entries_show_parents = 'hide'
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


def _shorten_inherited(app, what, name, obj, options, lines) -> None:
  """Keeps the first line of inherited docstrings; dm_env's are in Markdown."""
  del app, name, options
  if what == 'method' and not obj.__doc__:
    del lines[1:]


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


def _name_modules(app, what, name, obj, options, lines) -> None:
  """Puts a module's name above what it has."""
  del app, obj, options
  if what == 'module':
    lines[:0] = [f'.. rubric:: {name}', '   :class: module', '']


def _skip_fields(app, what, name, obj, skip, options) -> bool:
  """Leaves out what named tuples say of each field: the class says more."""
  del app, what, name, options
  is_field = (getattr(obj, '__doc__', '') or '').startswith('Alias for field')
  return skip or is_field


def _tidy_signature(app, what, name, obj, options, args, returns):
  """Lets Sphinx read what it would show in one lump, for a default's sake."""
  del app, name
  if what == 'class':
    options['show-inheritance'] = obj.__bases__ != (object,)
  return args and re.sub(r'<[^<>]+>', '...', args), returns


class _Mermaid(rst.Directive):
  """A graph in Mermaid's words, drawn while the pages are built.

  Colors are the style sheet's, so that one drawing does for light and dark. On
  a narrow page a wide one scrolls.
  """

  has_content = True

  def run(self) -> list[nodes.Node]:
    env = self.state.document.settings.env
    name = f'drawing-{env.new_serialno("mermaid")}'
    svg = mermaidx.render('\n'.join(self.content)).svg()
    svg = re.sub(r'<style>.*?</style>', '', svg, flags=re.S)
    svg = svg.replace('my-svg', name)
    svg = re.sub(
      r'style="(?=[^>]*viewBox="\S+ \S+ (\S+) )',
      r'style="min-width: min(\1px, 30rem);',
      svg,
      count=1,
    )
    return [nodes.raw('', f'<div class="drawing">{svg}</div>', format='html')]


_MATH = math_core.LatexToMathML()


def _mathml(latex: str, *, is_block: bool) -> str:
  """Returns a formula as browsers draw it themselves."""
  found = _MATH.convert_with_local_state(latex, displaystyle=is_block)
  # Else Chromium sets bars and tildes into the letters below them.
  return found.replace(' accent="true"', '')


def _visit_inline_math(writer, node) -> None:
  writer.body.append(_mathml(node.astext(), is_block=False))
  raise nodes.SkipNode


def _visit_block_math(writer, node) -> None:
  math = _mathml(node.astext(), is_block=True)
  writer.body.append(f'<div class="formula">{math}</div>')
  raise nodes.SkipNode


class _Table(rst.Directive):
  """A table in Markdown that is generated from the code."""

  required_arguments = 1
  final_argument_whitespace = True
  make: Callable[[str], list[str]]

  def run(self) -> list[nodes.Node]:
    lines = self.make(self.arguments[0])
    container = nodes.Element()
    self.state.nested_parse(
      statemachine.StringList(lines, self.name), 0, container
    )
    return container.children


class _Flags(_Table):
  """Flags of `repertory train` under a heading of its help."""

  make = staticmethod(tables.flags)


class _Settings(_Table):
  """Settings of an agent or a reward model."""

  make = staticmethod(tables.settings)


def _add_font(app, exception) -> None:
  """Puts a font with large brackets and signs beside the pages."""
  if exception is None:
    name = 'STIXTwoMath-Regular.ttf'
    font = importlib.resources.files('ziamath.fonts') / name
    (pathlib.Path(app.outdir) / '_static' / name).write_bytes(font.read_bytes())


def setup(app) -> None:
  """Registers the hooks above; called by Sphinx."""
  app.add_directive('flags', _Flags)
  app.add_directive('settings', _Settings)
  app.add_directive('mermaid', _Mermaid)
  app.add_html_math_renderer(
    'mathml',
    inline_renderers=(_visit_inline_math, None),
    block_renderers=(_visit_block_math, None),
  )
  # Before napoleon, which would move arguments and results.
  app.connect('autodoc-process-docstring', _shorten_inherited, priority=400)
  app.connect('autodoc-process-docstring', _mark_names)
  app.connect('autodoc-process-docstring', _quote_drawings)
  app.connect('autodoc-process-docstring', _name_modules)
  app.connect('autodoc-process-signature', _tidy_signature)
  app.connect('autodoc-skip-member', _skip_fields)
  app.connect('build-finished', _add_font)
