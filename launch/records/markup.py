"""HTML whose text is escaped by itself."""

import html
from collections.abc import Iterable, Sequence

from repertory.launch.records import wording

_VOID = ('img', 'meta')


class Html(str):
  """Text that is HTML already."""

  __slots__ = ()


def element(name: str, /, *content: object, **attributes: object) -> Html:
  """Returns an element.

  Args:
    name: Its tag.
    *content: HTML as it is, and other things as escaped text.
    **attributes: Escaped, 'class_' for class; True for a name alone, and None
      or False for nothing.
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
  """Returns parts after one another, escaped unless they are HTML."""
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
  """Returns a table in a frame that scrolls sideways where there is no room.

  Args:
    header: What is above the columns.
    rows: Cells.
    numbers: Indices of the columns of numbers, which are put to the right.
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
  """Returns a part of a page with its heading; nothing without content."""
  if not any(content):
    return Html('')
  heading = element('h2', title)
  told = element('p', note, class_='note') if note else ''
  return element('section', heading, told, *content)


def folded(title: object, *content: object) -> Html:
  """Returns content that is shown when its title is clicked."""
  return element('details', element('summary', title), *content)
