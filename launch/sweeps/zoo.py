"""The zoo: a sweep of the presets by environment; its results and policies."""

import fnmatch
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from repertory.agents.interface import registry as agents_registry
from repertory.agents.interface import tuned_presets
from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch import results
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans
from repertory.launch.sweeps import results as results_lib
from repertory.launch.trained import released

PAGE = 'results.md'

# Settings that name the directory of a cell.
_AXES = ('agent', 'env', 'steps')
_HEADINGS = (
  'Environment', 'Agent', 'Seeds', 'Mean return', '95 % interval', 'IQM',
  'Steps', 'CPU seconds', 'Reference', 'Command',
)  # fmt: skip
_INTRODUCTION = """# Results of the zoo

Returns are those of the last evaluation of each run. Mean, 95 % bootstrap
interval and interquartile mean (IQM) are over seeds; CPU seconds are the mean
of a run. A command trains the first seed of its row."""


class Cell(NamedTuple):
  """An agent and an environment of its table."""

  agent: str
  environment: str
  tuned: tuned_presets.TunedPreset

  @property
  def combination(self) -> manifest_lib.Combination:
    """Arguments of `train`."""
    return {
      'agent': self.agent,
      'env': self.environment,
      'steps': str(self.tuned.steps),
      'evaluation_episodes': str(self.tuned.evaluation_episodes),
    }


def cells(agents: Iterable[str], environments: Iterable[str]) -> list[Cell]:
  """Returns the cells whose names match one of the patterns each.

  Raises:
    SettingError: If a pattern matches nothing.
  """
  found = [
    Cell(agent.name, environment, tuned)
    for agent in agents_registry.agents()
    for tuned in tuned_presets.table(agent.name)
    for environment in tuned.environments
  ]
  found = _select(found, 'agent', lambda cell: cell.agent, [*agents])
  return _select(found, 'env', lambda cell: cell.environment, [*environments])


def _select(
  found: Sequence[Cell],
  setting: str,
  name_of: Callable[[Cell], str],
  patterns: Sequence[str],
) -> list[Cell]:
  """Returns the cells whose names match; raises SettingError without any."""
  names = sorted({*map(name_of, found)})
  for pattern in patterns:
    if not fnmatch.filter(names, pattern):
      raise SettingError(
        setting,
        f'must match one of {", ".join(names)}; got {pattern!r}.'
        f'{did_you_mean(pattern, names)}',
      )
  return [
    cell
    for cell in found
    if any(fnmatch.fnmatchcase(name_of(cell), one) for one in patterns)
  ]


def check_directory(directory: str) -> None:
  """Raises SettingError for one whose files a zoo would replace or mix with."""
  manifest = manifest_lib.load(directory)
  found = [
    name
    for name in (PAGE, released.FOLDER)
    if os.path.lexists(os.path.join(directory, name))
  ]
  if manifest.groups and manifest.axes != [*_AXES]:
    found, why = [manifest_lib.FILE], 'is of a sweep'
  elif manifest.groups or not found:
    return
  else:
    why = 'a zoo would replace'
  raise SettingError(
    'directory',
    f'must be that of a zoo, or a new one, got {directory}, with '
    f'{" and ".join(found)}, which {why}. Choose another directory.',
  )


class ZooPlan(plans.ListPlan):
  """Plan of cells, which writes the results whenever a run has ended."""

  def __init__(self, chosen: Sequence[Cell], num_seeds: int, read: plans.Read):
    combinations = [
      {**cell.combination, manifest_lib.SEED: str(seed)}
      for seed in range(num_seeds)
      for cell in chosen
    ]
    super().__init__(combinations, _AXES, read)

  def open(self, manifest: manifest_lib.SweepManifest) -> None:
    super().open(manifest)
    self._manifest = manifest
    steps = sum(int(settings['steps']) for _, settings in self._asked)
    self.description += f'; {steps:,} steps in all'

  def end(self, run: manifest_lib.SweepRun) -> None:
    write_results(self._manifest, run.path)

  def conclude(self) -> list[str]:
    return [f'Results: {write_results(self._manifest)}']


def write_results(
  manifest: manifest_lib.SweepManifest, ended: str | None = None
) -> str:
  """Writes the page atomically; returns its path.

  The policy of a run that has `ended` is released if its last evaluation is
  the best of its agent and environment.
  """
  path = os.path.join(manifest.directory, PAGE)
  try:
    with open(f'{path}.new', 'w', encoding='utf-8') as file:
      file.write(_make_page(manifest))
    os.replace(f'{path}.new', path)
    if ended is not None and manifest.codes[ended] == 0:
      directory = os.path.join(manifest.directory, ended)
      if (last := results.read(directory).last) is not None:
        policies = os.path.join(manifest.directory, released.FOLDER)
        released.release(policies, directory, last._asdict())
  except OSError as error:
    raise SettingError(
      'directory',
      f'must be writable, got {manifest.directory}: {error.filename or path}: '
      f'{error.strerror}. The same command resumes the zoo.',
    ) from error
  return path


def _make_page(manifest: manifest_lib.SweepManifest) -> str:
  """Returns the page of results: a row for each cell of the directory."""
  scores = {
    score.group.label: score for score in results_lib.tabulate(manifest)
  }
  rows = sorted(
    _row(manifest, group, scores.get(group)) for group in manifest.groups
  )
  separators = ['---'] * len(_HEADINGS)
  lines = [
    f'| {" | ".join(texts)} |' for texts in (_HEADINGS, separators, *rows)
  ]
  return '\n'.join([_INTRODUCTION, '', *lines, ''])


def _row(
  manifest: manifest_lib.SweepManifest,
  group: str,
  score: results.groups.Score | None,
) -> list[str]:
  """Returns the texts of a cell of the zoo, in the order of the headings."""
  aggregates, wording = results.aggregates, results.wording
  settings = manifest.settings(group)
  returns = [wording.NOTHING] * 4
  if score is not None:
    runs, last = score.group.runs, score.last
    interval = aggregates.bootstrap_interval(last, aggregates.mean)
    seconds = [run.cpu_seconds for run in runs if run.cpu_seconds is not None]
    returns = [
      wording.number(last.mean()),
      wording.interval(*interval),
      wording.number(aggregates.interquartile_mean(last)),
      wording.number(sum(seconds) / len(seconds) if seconds else None),
    ]
  *returns, cpu_seconds = returns
  return [
    f'`{settings["env"]}`',
    settings['agent'],
    _describe_seeds(manifest, group),
    *returns,
    f'{settings["steps"]:,}',
    cpu_seconds,
    _describe_reference(settings),
    f'`{_command(settings)}`',
  ]


def _describe_seeds(manifest: manifest_lib.SweepManifest, group: str) -> str:
  """Returns the number of runs that are done, and of those that failed."""
  codes = [
    code
    for path, code in manifest.codes.items()
    if os.path.dirname(path) == group
  ]
  text = str(codes.count(0))
  if codes.count(0) < len(codes):
    text = f'{text} of {len(codes)}'
  num_failed = sum(code not in (0, None) for code in codes)
  return f'{text}, **{num_failed} failed**' if num_failed else text


def _describe_reference(settings: dict[str, Any]) -> str:
  tuned = tuned_presets.find(settings['agent'], settings['env'])
  value = tuned and tuned.environments.get(settings['env'])
  if tuned is None or value is None:
    return results.wording.NOTHING
  return f'{results.wording.number(value)} ({tuned.reference})'


def _command(settings: dict[str, Any]) -> str:
  names = *_AXES, 'evaluation_episodes'
  chosen = {name: str(settings[name]) for name in names}
  arguments = manifest_lib.to_arguments(chosen)
  return shlex.join(['repertory', 'train', *arguments])
