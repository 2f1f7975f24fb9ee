"""Checks of an experiment before anything starts."""

from collections.abc import Sequence
from typing import NamedTuple

from repertory.components import offline, replay, transports
from repertory.components.config.settings import SettingError
from repertory.components.replay import local
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.platform import machine_memory

_WARNING_SHARE = 0.5  # Of the machine's memory.


class _TooLarge(SettingError):
  """Raised for tables that do not fit into memory.

  Attributes:
    max_fitting: Number of items of the largest table that would fit.
  """

  max_fitting: int


class ReplayOption(NamedTuple):
  """A replay option: a transport, and the experience adapted to it.

  Attributes:
    transport: Kind of transport.
    experience: The agent's experience; a queue is bundled if supported and
      useful.
    warning: Warning for the user; '' for none.
    least_bytes: Lower bound on the memory of full tables, in bytes.
  """

  transport: str
  experience: experience_lib.Experience
  warning: str
  least_bytes: int

  @property
  def rank(self) -> int:
    """Rank among the options of one run; lower is better."""
    return self.least_bytes if self.warning else 0


def find_options(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kinds: Sequence[str],
  smallest_batch: int | None = None,
) -> list[ReplayOption]:
  """Returns the replay options of an experiment, the best first.

  An experiment that could deadlock in one topology is refused in all: equal
  experiments mean the same algorithm. docs/operations.md lists the checks.

  Args:
    experiment: The experiment to run.
    experience: The agent's experience.
    kinds: Available kinds of transport, the best first.
    smallest_batch: Divisor of each adder's number of environments; None for the
      environments of an actor.

  Returns:
    At least one. Options with a warning come last, sorted by memory.

  Raises:
    SettingError: Naming the setting to change.
    ValueError: Naming what needs another kind of transport.
  """
  experience.check(experiment.num_environments)
  if experience.is_offline and transports.OFFLINE not in kinds:
    raise SettingError(
      'topology',
      f"must be 'offline', as agent '{experiment.agent}' learns from data "
      'alone.',
    )
  options, refusals = [], []
  for kind in kinds:
    try:
      warning, least_bytes = _check_transport(experiment, experience, kind)
    except ValueError as refusal:
      refusals.append(refusal)
      continue
    bundled = _bundle(experiment, experience, kind, smallest_batch)
    options.append(ReplayOption(kind, bundled, warning, least_bytes))
  if not options:  # Raises the error with the least severe limit.
    raise max(refusals, key=lambda one: getattr(one, 'max_fitting', -1))
  return sorted(options, key=lambda option: option.rank)


def _bundle(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kind: str,
  smallest_batch: int | None = None,
) -> experience_lib.Experience:
  """Returns the experience with its queue bundled, if the transport bundles.

  Args:
    kind: Kind of transport. Transports within a process need no bundles.
    smallest_batch: See `find_options`.
  """
  if kind != transports.ReverbTransport.kind:
    return experience.bundled(1)
  return experience.bundled(
    smallest_batch or experiment.num_environments_per_actor
  )


def _check_transport(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kind: str,
) -> tuple[str, int]:
  """Checks a kind of transport; returns a warning and the least bytes."""
  if kind in (transports.InProcessTransport.kind, transports.SHARES):
    transports.check_in_process(experience, experiment.builder)
  if kind in (transports.COMPILED, transports.OFFLINE):
    return '', 0  # The checks of these topologies compare their memory.
  return _check_memory(
    experiment,
    experience,
    machine_memory.total_bytes(),
    is_compressed=kind == transports.ReverbTransport.kind,
  )


def check_steps(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kinds: Sequence[str],
) -> None:
  """Raises if a run would end before the first learner step.

  Raises:
    SettingError: Naming the setting to change.
  """
  if transports.OFFLINE in kinds:
    return  # Any number of learner steps is possible.
  max_items = _max_items(experiment, experience)
  if experience.updates_due(max_items):
    return
  raise SettingError(
    'max_steps',
    'must be higher for the learner to take a step: it needs '
    f'{_describe_need(experience)}, and {experiment.max_steps} '
    f'environment steps make {max_items} items at most. Take more steps, or '
    'lower the others.',
  )


def explain_no_update(
  experience: experience_lib.Experience, inserts: int
) -> str:
  """Explains why a run ended before its first learner step.

  `check_steps` cannot exclude it: the number of items per step depends on the
  environment.

  Args:
    inserts: Number of items inserted into the learner's table.
  """
  name = experience.table.name
  return (
    f"The learner took no step in this run: table '{name}' got {inserts} "
    f'items, and the learner needs {_describe_need(experience)}. Take more '
    'steps, or lower these settings.'
  )


def _describe_need(experience: experience_lib.Experience) -> str:
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
      f'{_describe_need(experience.with_targets)}'
    )
  return need


def _check_memory(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  total_bytes: int,
  is_compressed: bool,
) -> tuple[str, int]:
  """Compares the memory that the tables may take with the machine's.

  Compression of images may save much or nothing: a compressed run is refused
  only if it cannot fit at the best compression.

  Returns:
    A warning if it may be more than half, else ''; and the least bytes.
  """
  tables, max_items = experience.all_tables, _max_items(experiment, experience)
  counts = [
    # Tables that others than actors write may have more items.
    min(table.max_size, max_items) if table in experience.tables
    else table.max_size
    for table in tables
  ]  # fmt: skip
  if is_compressed:
    most = [table.item_bytes for table in tables]
    least = [table.least_item_bytes for table in tables]
  else:
    most = least = [_local_bytes(experiment, table) for table in tables]
  sizes = [size * count for size, count in zip(most, counts)]
  least_sizes = [size * count for size, count in zip(least, counts)]
  recorded = _recorded_bytes(experiment, tables, total_bytes)
  needed, least_needed = sum(sizes) + recorded, sum(least_sizes) + recorded
  if needed <= _WARNING_SHARE * total_bytes:
    return '', least_needed
  largest = sizes.index(max(sizes))
  table = tables[largest]
  is_first = table in experience.tables
  described = experience if is_first else experience.learned
  setting = described.called['max_size']
  in_words = machine_memory.gigabytes
  text = (
    f'Replay may take {in_words(sum(sizes))} of the {in_words(total_bytes)} '
    f"of memory: table '{table.name}' up to {counts[largest]:,} items of "
    f'{most[largest]:,} bytes each, '
    + _describe_bytes(experiment, is_compressed)
  )
  if recorded:
    text += f'; and the recording {in_words(recorded)}'
  if least_needed <= total_bytes:
    warning = f'{text} (max_size is {setting} = {table.max_size:,})'
    return warning, least_needed
  others = least_needed - least_sizes[largest]
  fitting = max(0, (total_bytes - others) // least[largest])
  refusal = _TooLarge(
    setting,
    f'must be at most {fitting:,}, or the machine must have more '
    f'memory; got {table.max_size:,}. {text}. That exceeds the memory'
    + (', even if images compress well.' if is_compressed else '.'),
  )
  refusal.max_fitting = fitting
  raise refusal


def _recorded_bytes(
  experiment: experiment_lib.Experiment,
  tables: Sequence[replay.TableSpec],
  total_bytes: int,
) -> int:
  """Returns the memory of a recording's unwritten steps, in bytes at most.

  Raises:
    SettingError: If the machine has less.
  """
  if experiment.record is None:
    return 0
  slots = experiment.num_environments_per_actor
  most = experiment.num_actors * offline.max_bytes(slots)
  # An item has all data of a step, and usually more.
  item_bytes = max(table.item_bytes for table in tables)
  num_steps = experiment.max_steps + experiment.num_environments
  found = min(most, num_steps * item_bytes)
  if found > total_bytes:
    in_words = machine_memory.gigabytes
    raise SettingError(
      'record',
      'must fit into memory until it is written, got '
      f'{experiment.num_environments:,} environments, whose open episodes may '
      f'take {in_words(found)} of the {in_words(total_bytes)}. Leave it out, '
      'or use fewer environments.',
    )
  return found


def _local_bytes(
  experiment: experiment_lib.Experiment, table: replay.TableSpec
) -> int:
  """Returns the memory of an item in this process, in bytes at most."""
  copied = local.copied_bytes(table) if experiment.checkpoint_replay else 0
  return local.item_bytes(table) + copied


def _describe_bytes(
  experiment: experiment_lib.Experiment, is_compressed: bool
) -> str:
  if is_compressed:
    return 'compression not counted'
  if experiment.checkpoint_replay:
    return 'uncompressed, including copies for checkpoints'
  return 'uncompressed'


def count_updates(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> int:
  """Returns the maximum number of learner steps of a whole run."""
  items = _max_items(experiment, experience)
  return experience.updates_due(items)


def _max_items(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> int:
  """Returns the maximum number of items of a run."""
  # The last step of all environments may go beyond `max_steps`.
  return experience.items.max_items(
    experiment.max_steps + experiment.num_environments - 1
  )
