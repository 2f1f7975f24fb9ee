"""HTML elements with automatic escaping."""

import html
from collections.abc import Iterable, Sequence

from repertory.launch.results import wording

_VOID = ('img', 'meta')


class Html(str):
  """Text that is HTML, so not escaped again."""

  __slots__ = ()


def element(name: str, /, *content: object, **attributes: object) -> Html:
  """Returns an element.

  Args:
    name: The tag.
    *content: Content; anything but `Html` is escaped.
    **attributes: Attributes, escaped; 'class_' for class. True gives a name
      without value; None and False omit the attribute.
  """
  shown = ''
  for key, value in attributes.items():
    key = key.rstrip('_').replace('_', '-')
    if value is True:
      shown += f' {key}'
    elif value is not None and value is not False:
      shown += f' {key}="{html.escape(wording.text(value))}"'
  if name in _VOID:
    return Html(f'<{name}{shown}>')
  return Html(f'<{name}{shown}>{join(content)}</{name}>')


def join(content: Iterable[object]) -> Html:
  """Concatenates parts, escaped unless they are HTML."""
  return Html(
    ''.join(
      part if isinstance(part, Html) else html.escape(wording.text(part))
      for part in content
    )
  )


def table(
  header: Sequence[object],
  rows: Iterable[Sequence[object]],
  numbers: Sequence[int] = (),
) -> Html:
  """Returns a table in a frame that scrolls horizontally.

  Args:
    header: Titles of the columns.
    rows: Cells of each row.
    numbers: Indices of the columns of numbers, which are right-aligned.
  """

  def cells(kind: str, row: Sequence[object]) -> Html:
    return join(
      element(kind, cell, class_='number' if i in numbers else None)
      for i, cell in enumerate(row)
    )

  head = element('thead', element('tr', cells('th', header)))
  body = element('tbody', *(element('tr', cells('td', row)) for row in rows))
  return element('div', element('table', head, body), class_='wide')


def section(title: str, *content: object, note: str = '') -> Html:
  """Returns a section with its heading; '' without content."""
  if not any(content):
    return Html('')
  heading = element('h2', title)
  paragraph = element('p', note, class_='note') if note else ''
  return element('section', heading, paragraph, *content)


def folded(title: object, *content: object) -> Html:
  """Returns content that is shown when its title is clicked."""
  return element('details', element('summary', title), *content)
