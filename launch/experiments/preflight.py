"""Checks of replay, memory and steps before anything starts."""

from collections.abc import Sequence
from typing import NamedTuple

from repertory.components import specs, transports
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib
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
  smallest_batch: int | None = None,
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
  experience = experiment.builder.experience(spec, num_environments)
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
    # Transports within a process need no bundles.
    bundle = 1
    if kind == transports.REVERB:
      bundle = smallest_batch or experiment.num_environments_per_actor
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
    in_server = kind == transports.REVERB
    is_copied = checkpoint_replay and not in_server
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
