"""Sections of a report that compare groups of runs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.launch.results import aggregates, finding, markup, wording
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import scores as scores_lib
from repertory.launch.results.markup import Html, element

_INTERVAL = f'{aggregates.CONFIDENCE:.0%} interval'


def scores(grouped: groups_lib.Grouped) -> Html:
  """Returns a table of the groups' last evaluations."""
  found = scores_lib.score(grouped.groups)
  if not found:
    return Html('')
  rows = []
  for one in sorted(
    found, key=lambda one: (one.group.environment, -np.mean(one.last))
  ):
    first = max(
      (o for o in found if o.group.environment == one.group.environment),
      key=lambda other: np.mean(other.last),
    )
    chance = aggregates.probability_of_improvement(one.last, first.last)
    rows.append(
      [
        one.group.environment,
        one.group.label,
        len(one.last),
        _span(one.steps),
        wording.number(np.mean(one.last)),
        wording.interval(
          aggregates.bootstrap_interval(one.last, aggregates.mean)
        ),
        wording.number(aggregates.interquartile_mean(one.last)),
        wording.number(np.mean(one.best)) if len(one.best) else wording.NOTHING,
        wording.number(np.mean(one.area)),
        wording.NOTHING if one is first else f'{chance:.0%}',
      ]
    )
  header = [
    'environment', 'variant', 'seeds', 'steps', 'last return', _INTERVAL, 'IQM',
    'best return', 'mean over training', 'beats the first',
  ]  # fmt: skip
  return markup.section(
    'Scores',
    markup.table(header, rows, numbers=range(2, len(header))),
    _overall(scores_lib.rank_overall(found)),
    note='Mean returns of the last evaluation of each run, averaged over '
    'seeds. The mean over training covers the steps that all runs on the '
    'environment have taken. The last column is the probability that a run '
    'of the variant ends better than one of the first variant.',
  )


def _overall(ranked: Sequence[scores_lib.Overall]) -> Html:
  if not ranked:
    return Html('')
  rows = [
    [one.label, f'{one.value:.2f}', '{:.2f} to {:.2f}'.format(*one.interval)]
    for one in ranked
  ]
  return markup.join(
    [
      element('h3', 'Over all environments'),
      element(
        'p',
        'Interquartile mean of last returns, 0 for the worst and 1 for the '
        'best of these runs on an environment. Seeds are resampled within it.',
        class_='note',
      ),
      markup.table(['variant', 'IQM', _INTERVAL], rows, numbers=(1, 2)),
    ]
  )


def settings(grouped: groups_lib.Grouped) -> Html:
  """Returns the settings that differ, and all settings, folded."""
  groups = grouped.groups
  different = groups_lib.compare(groups)
  names = [_name(group, grouped) for group in groups]
  content = []
  if different:
    rows = [
      [element('code', name), *map(_setting, values)]
      for name, values in different.items()
    ]
    content.append(markup.table(['setting', *names], rows))
  elif groups:
    content.append(element('p', 'Only the seeds differ.'))
  content += [
    markup.folded(f'All settings of {name}', _all_settings(group))
    for name, group in zip(names, groups)
  ]
  return markup.section('Settings that differ', *content)


def left_out(grouped: groups_lib.Grouped, found: finding.Found) -> Html:
  """Returns the runs and folders that are in no curve, with reasons."""
  notes = [f'{path}: {why}' for path, why in found.others]
  entries = [element('li', note) for note in (*grouped.notes, *notes)]
  return markup.section('Left out', element('ul', *entries) if entries else '')


def _span(values: np.ndarray) -> str:
  low, high = int(np.min(values)), int(np.max(values))
  return f'{low:,}' if low == high else f'{low:,} to {high:,}'


def _name(group: groups_lib.Group, grouped: groups_lib.Grouped) -> str:
  """Returns a group's label, with its environment if there are several."""
  if len(grouped.environments) == 1:
    return group.label
  return f'{group.label} on {group.environment}'


def _setting(value: Any) -> str:
  if value is None:
    return wording.NOTHING
  return value if isinstance(value, str) else json.dumps(value, default=str)


def _all_settings(group: groups_lib.Group) -> Html:
  run = group.runs[0]
  given: Mapping[str, Any] = {**group.settings, **run.experiment}
  rows = [
    [element('code', name), _setting(given[name])] for name in sorted(given)
  ]
  return element(
    'div', markup.table(['setting', 'value'], rows), class_='words'
  )
