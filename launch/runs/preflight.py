"""What can never run, found out before anything starts."""

from collections.abc import Sequence
from typing import NamedTuple

from repertory.components import experience as experience_lib
from repertory.components import recordings, replay, roads
from repertory.components.replay import local
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib
from repertory.launch.host import machine_memory

_WARNING_SHARE = 0.5  # Of the machine's memory.


class _TooLarge(SettingError):
  """Tables do not fit into memory.

  Attributes:
    max_fitting: Items of the largest one that would fit.
  """

  max_fitting: int


class Way(NamedTuple):
  """One in which a run's experience can travel.

  Attributes:
    road: The kind of road that carries it.
    experience: The agent's, its queue in bundles if that may be and pays.
    warning: What the user should know of it; '' if nothing.
    least_bytes: What its tables take at the least when they are full.
  """

  road: str
  experience: experience_lib.Experience
  warning: str
  least_bytes: int

  @property
  def rank(self) -> int:
    """The lower the better, for ways of one run."""
    return self.least_bytes if self.warning else 0


def find_ways(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kinds: Sequence[str],
  smallest_batch: int | None = None,
) -> list[Way]:
  """Finds out in which ways an experiment can run.

  One in which somebody would wait for ever is refused in all topologies, for
  equal experiments mean the same algorithm. docs/operations.md lists what is
  refused.

  Args:
    experiment: What is to run.
    experience: Its agent's.
    kinds: The kinds of road that there are, the best first.
    smallest_batch: What the environments of each adder are a multiple of; None
      for the environments of an actor.

  Returns:
    At least one. Those with a warning come last, with what takes least memory
    first.

  Raises:
    SettingError: Naming the setting to change.
    ValueError: Naming what only another kind of road can do.
  """
  experience.check(experiment.num_environments)
  if experience.is_of_data and roads.DATA not in kinds:
    raise SettingError(
      'topology',
      f"must be 'offline', for agent '{experiment.agent}' learns from data "
      'alone.',
    )
  ways, refusals = [], []
  for kind in kinds:
    try:
      warning, least_bytes = _check_road(experiment, experience, kind)
    except ValueError as refusal:
      refusals.append(refusal)
      continue
    bundled = _bundle(experiment, experience, kind, smallest_batch)
    ways.append(Way(kind, bundled, warning, least_bytes))
  if not ways:  # The one that leaves most is told.
    raise max(refusals, key=lambda one: getattr(one, 'max_fitting', -1))
  return sorted(ways, key=lambda way: way.rank)


def _bundle(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kind: str,
  smallest_batch: int | None = None,
) -> experience_lib.Experience:
  """Returns the experience with its queue in bundles, if the road has some.

  Args:
    kind: The road's. What is handed over in a process needs no bundles.
    smallest_batch: What the environments of each adder are a multiple of; None
      for the environments of an actor.
  """
  if kind != roads.ReverbRoad.kind:
    return experience.bundled(1)
  return experience.bundled(
    smallest_batch or experiment.num_environments_per_actor
  )


def _check_road(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kind: str,
) -> tuple[str, int]:
  """Refuses what a road cannot do; returns a warning and the least bytes."""
  if kind in (roads.LocalRoad.kind, roads.PARTS):
    roads.check_local(experience, experiment.builder)
  if kind in (roads.PROGRAM, roads.DATA):
    return '', 0  # What these take is compared when they are checked.
  return _check_memory(
    experiment,
    experience,
    machine_memory.total_bytes(),
    is_compressed=kind == roads.ReverbRoad.kind,
  )


def check_steps(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  kinds: Sequence[str],
) -> None:
  """Refuses a run that ends before its learner is to take a step.

  Raises:
    SettingError: Naming the setting to change.
  """
  if roads.DATA in kinds:
    return  # Of which there are as many steps as one likes.
  max_items = _max_items(experiment, experience)
  if experience.updates_due(max_items):
    return
  raise SettingError(
    'max_steps',
    'must be more for the learner to take any step: it needs '
    f'{_describe_need(experience)}, and {experiment.max_steps} '
    f'environment steps make {max_items} items at most. Take more steps, or '
    'lower the others.',
  )


def explain_no_update(
  experience: experience_lib.Experience, inserts: int
) -> str:
  """Says why a run has ended before its learner took a step.

  For that it may still have been long enough, by what `check` knows: how many
  items come of a step is up to the environment.

  Args:
    inserts: Items that the learner's table got.
  """
  name = experience.table.name
  return (
    f"The learner took no step in this run: table '{name}' got {inserts} "
    f'items, and the learner needs {_describe_need(experience)}. Take more '
    'steps, or lower these settings.'
  )


def _describe_need(experience: experience_lib.Experience) -> str:
  """Says how many items a learner needs for its first step."""
  table, batch_size = experience.table, experience.batch_size
  size_name = experience.called['batch_size']
  if table.rate_limit is None:
    return f'{size_name} = {batch_size} items'
  min_size = experience.called['min_size']
  told = (
    f'{min_size} = {table.min_size} items, and then {size_name} / '
    f'samples_per_insert = {batch_size} / '
    f'{table.rate_limit.samples_per_insert:g}'
  )
  if experience.labeled is not None:
    told += (
      f' for each {experience.rows} targets, of which it needs first '
      f'{_describe_need(experience.labeled)}'
    )
  return told


def _check_memory(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  total_bytes: int,
  is_compressed: bool,
) -> tuple[str, int]:
  """Compares what the tables may take with what there is.

  Images may be compressed by much, or not: where they are compressed at all, a
  run is refused only if it does not fit even so.

  Returns:
    A warning if it may be more than half, else ''; and what it is at the least.
  """
  tables, max_items = experience.all_tables, _max_items(experiment, experience)
  counts = [
    # Of what is written on there may be more than was lived.
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
    f'memory; got {table.max_size:,}. {text}. That is more than there is'
    + (', even if images compress well.' if is_compressed else '.'),
  )
  refusal.max_fitting = fitting
  raise refusal


def _recorded_bytes(
  experiment: experiment_lib.Experiment,
  tables: Sequence[replay.Table],
  total_bytes: int,
) -> int:
  """Returns the bytes of memory that unwritten steps of a recording may take.

  Raises:
    SettingError: If that is more than the machine has.
  """
  if experiment.record is None:
    return 0
  slots = experiment.num_environments_per_actor
  most = experiment.num_actors * recordings.max_bytes(slots)
  # An item has all data of a moment, and usually more.
  item_bytes = max(table.item_bytes for table in tables)
  num_moments = experiment.max_steps + experiment.num_environments
  found = min(most, num_moments * item_bytes)
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
  experiment: experiment_lib.Experiment, table: replay.Table
) -> int:
  """Returns what an item takes in this process at the most."""
  copied = local.copied_bytes(table) if experiment.checkpoint_replay else 0
  return local.item_bytes(table) + copied


def _describe_bytes(
  experiment: experiment_lib.Experiment, is_compressed: bool
) -> str:
  if is_compressed:
    return 'compression not counted'
  if experiment.checkpoint_replay:
    return 'not compressed, and with the copies of a checkpoint'
  return 'not compressed'


def count_updates(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> int:
  """Returns how many learner steps a whole run makes, at most."""
  items = _max_items(experiment, experience)
  return experience.updates_due(items)


def _max_items(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> int:
  """Returns the most items that the run can make."""
  # The last step of all environments may go beyond `max_steps`.
  return experience.items.max_items(
    experiment.max_steps + experiment.num_environments - 1
  )
