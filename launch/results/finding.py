"""Finds the directories of runs in folders."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from repertory.launch.opening import run_metadata
from repertory.launch.results import logs
from repertory.launch.results import runs as runs_lib

_NO_RUN = 'no run in it'


class Found(NamedTuple):
  """Runs found in folders.

  Attributes:
    runs: Readable runs, sorted by directory.
    others: Folders without a readable run, and the reasons.
  """

  runs: Sequence[runs_lib.RunRecord]
  others: Sequence[tuple[str, str]]

  def describe_others(self) -> str:
    """Returns a line that names the folders left out, or ''."""
    text = ', '.join(f'{path} ({why})' for path, why in self.others)
    return f'Left out: {text}.' if text else ''

  def describe_problems(self) -> str:
    """Returns a line on the unreadable files of runs so far, or ''."""
    text = '; '.join(problem for run in self.runs for problem in run.problems)
    return f'Could not be read: {text}.' if text else ''


def find(paths: Iterable[str]) -> Found:
  """Finds and reads all runs in folders, and in the folders in them.

  Folders whose name begins with a dot are skipped, and links are not followed,
  unless given in `paths`. The same holds for directories moved aside by
  `--fresh`.

  Args:
    paths: Directories of runs, or folders of them.

  Raises:
    SettingError: If one of them is no folder.
  """
  paths = [os.fspath(path) for path in paths]
  for path in paths:
    if not os.path.isdir(path):
      what = 'a file' if os.path.exists(path) else 'not there'
      raise SettingError(
        'paths', f'must be folders with runs; {path} is {what}.'
      )
  found: dict[str, runs_lib.RunRecord] = {}
  others: dict[str, str] = {}
  for path in paths:
    for directory, why in _search(path):
      real = os.path.realpath(directory)
      if why:
        others[directory] = why
      elif real not in found:
        found[real] = runs_lib.read(directory)
  runs = sorted(found.values(), key=lambda run: run.directory)
  for run in runs:
    if run.state == runs_lib.UNREADABLE:
      others[run.directory] = run.why
  readable = [run for run in runs if run.state != runs_lib.UNREADABLE]
  return Found(readable, sorted(others.items()))


def _is_run(directory: str) -> bool:
  """Whether a folder is the directory of a run, even of one without logs."""
  names = (directories.LOCK, f'{directories.LOGS}/{run_metadata.FILE}')
  return any(os.path.isfile(os.path.join(directory, name)) for name in names)


def _search(top: str) -> Iterator[tuple[str, str]]:
  """Yields the runs under a folder with '', and other folders with a reason."""
  if _is_run(top):
    yield top, ''
    return
  try:
    with os.scandir(top) as entries:
      folders = sorted(
        entry.path
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and not entry.name.startswith('.')
      )
  except OSError as error:
    yield top, logs.explain(error)
    return
  inside = []
  for folder in folders:
    if directories.is_aside(folder):
      inside.append((folder, 'set aside by --fresh'))
    else:
      inside += _search(folder)
  if all(why == _NO_RUN for _, why in inside):
    yield top, _NO_RUN
  else:
    yield from inside
