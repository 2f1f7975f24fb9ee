"""Sections of a report on the individual runs."""

import os
from collections.abc import Callable, Sequence

from repertory.launch.results import markup, throughput, wording
from repertory.launch.results import runs as runs_lib
from repertory.launch.results.markup import Html, element


def runs(found: Sequence[runs_lib.RunRecord]) -> Html:
  """Returns a table of all runs and their states."""
  name = _namer(found)
  rows = [
    [
      name(run),
      run.seed if run.seed is not None else wording.NOTHING,
      run.topology or wording.NOTHING,
      wording.steps(run.steps, run.max_steps),
      wording.number(run.last and run.last.episode_return),
      wording.number(run.best and run.best.episode_return),
      wording.duration(run.elapsed_seconds),
      element('span', run.state, class_=run.state.replace(' ', '-')),
      wording.time(run.ended or run.begun),
    ]
    for run in found
  ]
  header = [
    'directory', 'seed', 'topology', 'steps', 'last return', 'best return',
    'ran for', 'state', 'when',
  ]  # fmt: skip
  return markup.section(
    'Runs',
    markup.table(header, rows, numbers=(3, 4, 5, 6)),
    note=f'In {_folder(found)}.' if found else '',
  )


def pace(found: Sequence[runs_lib.RunRecord]) -> Html:
  """Returns a table of throughput and waiting times."""
  name = _namer(found)
  rows, words = [], []
  for run in found:
    measured = throughput.measure(run)
    rows.append(
      [
        name(run),
        wording.rate(measured.steps_per_second),
        wording.rate(measured.lately),
        wording.rate(measured.updates_per_second),
        wording.share(measured.inserts_wait),
        wording.share(measured.samples_wait),
        measured.bottleneck
        or ('acting and learning take turns' if measured.takes_turns else ''),
      ]
    )
    if measured.inference:
      words.append(
        [name(run)]
        + [_inference(name, v) for name, v in measured.inference.items()]
      )
  header = [
    'directory', 'steps/s', 'lately', 'updates/s', 'acting blocked',
    'learning blocked', 'bottleneck',
  ]  # fmt: skip
  servers = [
    element('h3', 'Inference servers'),
    markup.table(['directory', *throughput.INFERENCE.values()], words),
  ]
  return markup.section(
    'Throughput and waiting',
    markup.table(header, rows, numbers=range(1, 6)) if rows else '',
    *(servers if words else []),
    note='Blocked is the share of time in which the rate limiter makes one '
    'side wait for the other.',
  )


def incidents(found: Sequence[runs_lib.RunRecord]) -> Html:
  """Returns a table of incidents."""
  name = _namer(found)
  rows = [
    [
      name(run),
      one.kind,
      f'{one.text} (× {one.count})' if one.count > 1 else one.text,
    ]
    for run in found
    for one in throughput.incidents(run)
  ]
  if not rows:
    return markup.section(
      'Incidents', element('p', 'No restart, warning, stall or failure.')
    )
  return markup.section(
    'Incidents',
    element(
      'div', markup.table(['directory', 'kind', 'description'], rows),
      class_='words',
    ),
  )  # fmt: skip


def evaluations(found: Sequence[runs_lib.RunRecord]) -> Html:
  """Returns the last evaluation of each run."""
  name = _namer(found)
  rows = []
  for run in found:
    if run.last is None:
      continue
    low, high = (
      run.logs.column('evaluator', f'episode_return_{name}')
      for name in ('min', 'max')
    )
    rows.append(
      [
        name(run),
        f'{run.last.steps:,}',
        wording.number(run.last.episode_return),
        wording.number(run.last.deviation),
        wording.number(low[-1]) if len(low) else wording.NOTHING,
        wording.number(high[-1]) if len(high) else wording.NOTHING,
        run.last.num_episodes or wording.NOTHING,
      ]
    )
  header = [
    'directory', 'after steps', 'mean return', 'deviation', 'least', 'most',
    'episodes',
  ]  # fmt: skip
  table = markup.table(header, rows, numbers=range(1, 7)) if rows else ''
  return markup.section('Last evaluations', table)


def _inference(name: str, value: float) -> str:
  return wording.share(value) if name.startswith('of ') else f'{value:,.2f}'


def _namer(
  found: Sequence[runs_lib.RunRecord],
) -> Callable[[runs_lib.RunRecord], Html]:
  """Returns a function that names runs by their paths in the common folder."""
  folder = _folder(found)
  return lambda run: element('code', os.path.relpath(run.directory, folder))


def _folder(found: Sequence[runs_lib.RunRecord]) -> str:
  return wording.common_folder([run.directory for run in found])
