"""Checks of replay, memory, steps and data before anything starts."""

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory import __version__
from repertory.components import offline, specs, transports
from repertory.components.config.settings import SettingError, text_of
from repertory.components.transports import experience as experience_lib
from repertory.environments import wrappers
from repertory.launch.experiments import directories
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.platform import machine_memory


class ReplayOption(NamedTuple):
  """A kind of transport, the experience with its bundles, and a warning."""

  transport: str
  experience: experience_lib.Experience
  warning: str


def describe(
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  kinds: Sequence[str],
  smallest_batch: int = 1,
) -> tuple[experience_lib.Experience, list[ReplayOption]]:
  """Returns the agent's experience, and its replay options, the best first.

  To be called once: the experience of some agents takes random numbers. An
  experiment that could deadlock in one topology is refused in all: equal
  experiments mean the same algorithm. docs/operations.md lists the checks.
  Options with a warning come last; a ValueError says why nothing is possible.

  Args:
    kinds: Kinds of transport that the topology supports.
    smallest_batch: See `Topology.smallest_batch`.
  """
  num_environments = experiment.num_environments
  experience = _describe_items(experiment, spec, kinds)
  if experiment.demonstration_fraction:
    experience = experience.with_demonstrations(
      experiment.demonstration_fraction
    )
  experience.check(num_environments)
  if experience.is_offline and transports.OFFLINE not in kinds:
    raise SettingError(
      'topology',
      f"must be 'offline', as agent '{experiment.agent}' learns from data "
      'alone.',
    )
  max_items = experience.max_items(experiment.max_steps, num_environments)
  options, refusals = [], []
  for kind in kinds:
    # Only Reverb needs bundles.
    bundle = smallest_batch if kind == transports.REVERB else 1
    try:
      warning = _check_memory(
        experience, kind, max_items, experiment.checkpoint_replay
      )
    except ValueError as refusal:
      refusals.append(refusal)
    else:
      options.append(ReplayOption(kind, experience.bundled(bundle), warning))
  if not options:
    raise refusals[0]
  # Offline, any number of steps will do.
  if transports.OFFLINE not in kinds and not experience.updates_due(max_items):
    raise SettingError(
      'max_steps',
      'must be higher for the learner to take a step: it needs '
      f'{describe_need(experience)}, and {experiment.max_steps} '
      f'environment steps make {max_items} items at most. Take more steps, or '
      'lower the others.',
    )
  return experience, sorted(options, key=lambda one: bool(one.warning))


def _describe_items(
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  kinds: Sequence[str],
) -> experience_lib.Experience:
  """Returns the builder's experience, with outcomes of goals if it has any."""
  builder = experiment.builder
  experience = builder.experience(spec, experiment.num_environments)
  if not getattr(builder.config, 'hindsight_goals', 0):
    return experience
  if transports.COMPILED in kinds:
    raise SettingError(
      'hindsight_goals',
      'must be 0 in a compiled program, which cannot relabel transitions. '
      'Choose another topology.',
    )
  # Most runs have no goals.
  from repertory.launch.experiments import goals  # noqa: PLC0415

  return goals.bind(experience, spec, experiment)


def _check_memory(
  experience: experience_lib.Experience,
  kind: str,
  max_items: int,
  checkpoint_replay: bool,
) -> str:
  """Returns a warning about the memory of full tables, or ''; may refuse."""
  if kind in (transports.COMPILED, transports.OFFLINE):
    return ''  # These topologies know their memory, and check it.
  tables, sizes = experience.all_tables, []
  for table in tables:
    in_server = kind in (transports.REVERB, transports.SERVED)
    is_copied = checkpoint_replay and kind != transports.REVERB
    item_bytes = table.item_bytes(in_server, is_copied)
    # Tables that others than actors write may have more items.
    most = max_items if table is experience.table else table.max_size
    sizes.append(min(table.max_size, most) * item_bytes)
  needed, total = sum(sizes), machine_memory.total_bytes()
  if needed <= total / 2:
    return ''
  table = tables[sizes.index(max(sizes))]
  described = experience if table is experience.table else experience.learned
  setting, in_words = described.called['max_size'], machine_memory.gigabytes
  text = f'may take {in_words(needed)} of the {in_words(total)} of memory'
  if needed <= total:
    return f'replay {text} ({setting} is {table.max_size:,})'
  raise SettingError(
    setting,
    'must be lower, or the machine must have more memory; got '
    f'{table.max_size:,}: replay {text}.',
  )


def describe_need(experience: experience_lib.Experience) -> str:
  """Describes the number of items required for the first learner step."""
  table, batch_size = experience.table, experience.batch_size
  size_name = experience.called['batch_size']
  if table.rate_limit is None:
    return f'{size_name} = {batch_size} items'
  min_size = experience.called['min_size']
  need = (
    f'{min_size} = {table.min_size} items, and then {size_name} / '
    f'samples_per_insert = {batch_size} / '
    f'{table.rate_limit.samples_per_insert:g}'
  )
  if experience.with_targets is not None:
    need += (
      f' for each {experience.rows} targets, of which it needs first '
      f'{describe_need(experience.with_targets)}'
    )
  return need


def check_offline_settings(
  experiment: experiment_lib.Experiment, paths: Sequence[str]
) -> None:
  """Raises SettingError for settings of acting, and without data."""
  if experiment.builder.needs_own_steps:
    raise SettingError(
      'topology',
      f'must be another one for {type(experiment.builder).__name__}, which '
      "compares data with its own experience; got 'offline'.",
    )
  names = 'record', 'environments_per_actor', 'demonstrations', 'num_actors'
  for name in names:  # Settings of acting.
    value = getattr(experiment, name)
    if value and (name, value) != ('num_actors', 1):
      raise SettingError(
        name,
        "must be left out with topology 'offline', which has no actors; got "
        f'{value!r}.',
      )
  if getattr(experiment.builder.config, 'hindsight_goals', 0):
    raise SettingError(
      'hindsight_goals',
      "must be 0 with topology 'offline', because data sets have no copies.",
    )
  if not paths:
    raise SettingError(
      'data',
      'must name one or more folders of recorded episodes; got none. '
      '`repertory record` and `repertory train --record` write them.',
    )


def check_offline(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  paths: Sequence[str],
) -> None:
  """Raises for agents that cannot learn offline, and data that do not fit."""
  _check_agent(experiment, experience)
  seen: dict[str, str] = {}
  for path in paths:  # Steps of a folder named twice would count twice.
    other = seen.setdefault(os.path.realpath(path), path)
    if other is not path:
      raise SettingError(
        'data', f'must be different folders; got {other} and {path}.'
      )
  data = [offline.open_data(path) for path in paths]
  raw = recorded_spec(experiment, spec)
  for one in data:
    one.check(raw)
  _check_returns(experiment.builder, data, raw)
  table = transports.unlimited(experience, lengths_of(data)).table
  item_bytes = table.item_bytes(in_server=False)
  machine_memory.require(
    'data',
    item_bytes * table.max_size,
    f'{table.max_size:,} items of {item_bytes:,} bytes each',
  )


def _check_returns(
  builder: Any,
  data: 'Sequence[offline.DataSet]',
  spec: specs.EnvironmentSpec,
) -> None:
  """Raises SettingError for returns outside the range of the agent's critic."""
  if builder.return_bounds is None or builder.config.normalize_rewards:
    return
  # Reads these columns only: observations may be images.
  rewards = spec._replace(observations=(), actions=())
  returns = [
    offline.discounted_returns(steps, builder.config.discount)
    for one in data
    for steps in one.read(rewards)
  ]
  least = min(one.min() for one in returns)
  largest = max(one.max() for one in returns)
  vmin, vmax = builder.return_bounds
  for name, found, is_out, expected in (
    ('vmin', vmin, least < vmin, 'at most the least'),
    ('vmax', vmax, largest > vmax, 'at least the largest'),
  ):
    if is_out:
      raise SettingError(
        name,
        f'must be {expected} discounted return of the data, whose returns '
        f'range from {least:.4g} to {largest:.4g}; got {found:g}. Leave some '
        'room: the learned policy may do better, and returns of truncated '
        'episodes would continue.',
      )


def check_data(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  kinds: Collection[str],
) -> 'offline.RecordingManifest | None':
  """Checks demonstrations, and the folder of a recording; writes nothing.

  Args:
    kinds: Kinds of transport that the topology supports.

  Returns:
    Manifest of the recording, if there is one.

  Raises:
    SettingError: If they are unfit, or the folder has other recordings or
      files, or is not writable.
  """
  _check_demonstrations(experiment, experience, spec, kinds)
  if experiment.record is None:
    return None
  manifest = offline.RecordingManifest.of(
    experiment.agent,
    experiment.environment,
    recorded_spec(experiment, spec),
    __version__,
  )
  directories.check_writable(experiment.record, 'record')
  offline.prepare(experiment.record, manifest, writes=False)
  return manifest


def _check_demonstrations(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  kinds: Collection[str],
) -> None:
  paths, fraction = experiment.demonstrations, experiment.demonstration_fraction
  if bool(paths) != bool(fraction):
    raise SettingError(
      'demonstration_fraction',
      'must be above 0 with demonstrations, and 0 without; got '
      f'{fraction:g} and {", ".join(paths) or "none"}.',
    )
  if not paths:
    needs_some = experiment.builder.needs_demonstrations
    if needs_some and transports.OFFLINE not in kinds:
      _check_agent(experiment, experience)
      raise SettingError(
        'demonstrations',
        'must name the folders of episodes for '
        f'{type(experiment.builder).__name__} to imitate, and '
        'demonstration_fraction their share of every batch; got none.',
      )
    return
  with as_demonstrations():
    check_offline(experiment, experience, spec, paths)
  record = experiment.record
  if record is not None and os.path.realpath(record) in map(
    os.path.realpath, paths
  ):
    raise SettingError(
      'record',
      'must differ from the folders of demonstrations, or a resumed run '
      f'would imitate its own steps; got {record}. Record to a new folder.',
    )


@contextlib.contextmanager
def as_demonstrations() -> Iterator[None]:
  """Reports errors of data under the setting 'demonstrations'."""
  try:
    yield
  except SettingError as error:
    if error.setting != 'data':
      raise
    raise SettingError('demonstrations', error.problem) from error


def _check_agent(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> None:
  """Raises for agents that cannot learn offline."""
  try:
    transports.check_offline(experience)
  except ValueError as error:
    raise SettingError(
      'agent',
      f"'{experiment.agent}' cannot learn from data: "
      f'{text_of(error).rstrip(".")}.',
    ) from error


def lengths_of(data: 'Sequence[offline.DataSet]') -> np.ndarray:
  """Returns the lengths of all episodes, in steps."""
  return np.concatenate([one.lengths for one in data])


def recorded_spec(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> specs.EnvironmentSpec:
  """Returns the spec of recorded steps: the original environment's."""
  if not experiment.builder.observes_previous_action_and_reward:
    return spec
  return spec._replace(
    observations=wrappers.previous_action.original(spec.observations)
  )
