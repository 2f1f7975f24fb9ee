"""Videos of runs in a report: small ones embedded, others linked."""

import base64
import os
import urllib.parse
from collections.abc import Sequence

from repertory.components.config import regular_files
from repertory.launch.results import markup
from repertory.launch.results import runs as runs_lib
from repertory.launch.results.markup import Html, element

FOLDER = 'videos'

_KINDS = {'.mp4': 'video/mp4', '.webm': 'video/webm', '.gif': 'image/gif'}
_MAX_BYTES = 4_000_000
_MAX_BYTES_OF_PAGE = 40_000_000


def find(run: runs_lib.RunRecord) -> list[str]:
  """Returns the paths of a run's videos, the newest first.

  Symbolic links are left out, as they may lead anywhere.
  """
  try:
    names = regular_files.list_inside(run.directory, FOLDER)
  except OSError:
    return []
  paths = [
    os.path.join(run.directory, FOLDER, name)
    for name in names
    if os.path.splitext(name)[1].lower() in _KINDS
  ]
  return sorted(paths, key=os.path.getmtime, reverse=True)


def section(runs: Sequence[runs_lib.RunRecord], page_folder: str) -> Html:
  """Returns the section of a report with the videos of all runs.

  The newest of each run is embedded if it is small enough.

  Args:
    runs: The runs.
    page_folder: Folder of the page, for links.
  """
  shown, left = [], _MAX_BYTES_OF_PAGE
  for run in runs:
    paths = find(run)
    if not paths:
      continue
    newest, size = paths[0], os.path.getsize(paths[0])
    content = []
    if size <= min(_MAX_BYTES, left):
      left -= size
      content.append(_embed(run, os.path.basename(newest)))
    links = [
      element(
        'li',
        element('a', os.path.basename(path), href=_link(path, page_folder)),
      )
      for path in paths
    ]
    shown.append(
      element(
        'figure',
        element('figcaption', run.directory),
        *content,
        element('ul', *links),
      )
    )
  panels = element('div', *shown, class_='panels') if shown else ''
  return markup.section('Videos', panels)


def _embed(run: runs_lib.RunRecord, name: str) -> Html:
  path = os.path.join(FOLDER, name)
  with regular_files.open_inside(run.directory, path) as file:
    data = base64.b64encode(file.read()).decode()
  kind = _KINDS[os.path.splitext(name)[1].lower()]
  source = f'data:{kind};base64,{data}'
  if kind.startswith('image/'):
    return element('img', src=source, alt=f'Video {name}')
  return element('video', src=source, controls=True, loop=True, muted=True)


def _link(path: str, page_folder: str) -> str:
  return urllib.parse.quote(os.fsencode(os.path.relpath(path, page_folder)))
