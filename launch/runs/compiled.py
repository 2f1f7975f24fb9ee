"""What an experiment needs to run as one compiled program."""

from repertory.agents import builder as builder_lib
from repertory.components import adders, rollouts
from repertory.components import experience as experience_lib
from repertory.components.replay import tables
from repertory.components.settings import SettingError
from repertory.environments import registry, tensor
from repertory.launch import experiment as experiment_lib
from repertory.launch.host import machine_memory
from repertory.launch.runs import data_checks

# How a table inside a program may be sampled.
_SAMPLERS = ('uniform', tables.PRIORITIZED)

# What a program does itself; so what an agent does instead would be ignored.
_NOT_OVERRIDDEN = (
  'make_adder',
  'make_dataset',
  'make_priority_updater',
  'make_learner',
)


def check(experiment: experiment_lib.Experiment) -> None:
  """Refuses what cannot be compiled into one program.

  Raises:
    SettingError: Naming what is to be changed.
  """
  builder = experiment.builder
  data_checks.check_needs_none(experiment)
  for name in ('record', 'demonstrations', 'info'):
    if getattr(experiment, name):
      raise SettingError(
        name,
        'must be left out where a compiled program steps the environments; got '
        f'{getattr(experiment, name)!r}.',
      )
  for name in _NOT_OVERRIDDEN:
    if getattr(type(builder), name) is not getattr(builder_lib.Builder, name):
      raise SettingError(
        'topology',
        f'must be another one for {type(builder).__name__}, which overrides '
        f'{name}: a compiled program takes the place of that method.',
      )
  make_environment(experiment)


def check_experience(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> None:
  """Refuses experience that no program can keep.

  Raises:
    SettingError: Naming what is to be changed.
  """
  num_environments, table = experiment.num_environments, experience.table
  road = make_road(experience, num_environments, 0)
  name = experience.called['max_size']
  least = table.min_size + num_environments - 1
  if not table.is_queue and table.max_size < least:
    raise SettingError(
      name,
      f'must be at least {least}, for a program makes room for the items of a '
      f'moment of all {num_environments} environments at once, and '
      f'{table.min_size} must be left to learn from; got {table.max_size}.',
    )
  # A checkpoint is of one moment, so all is copied.
  needed = road.num_bytes * (2 if experiment.checkpoint_replay else 1)
  total = machine_memory.total_bytes()
  if needed > total:
    in_words = machine_memory.gigabytes
    raise SettingError(
      name,
      f'must be at most some {int(table.max_size * total / needed):,}, or the '
      f'machine must have more memory than {in_words(total)}; got '
      f'{table.max_size:,}. A compiled program keeps the moments of as many '
      f'items as they are, in {in_words(needed)}, with what a checkpoint of '
      'replay takes.',
    )


def make_environment(
  experiment: experiment_lib.Experiment,
) -> tensor.TensorEnvironment:
  """Makes the experiment's environment as TensorFlow.

  Raises:
    ArgumentError: If it is of another kind.
  """
  environment = registry.make_tensor_environment(experiment.environment_factory)
  if experiment.builder.observes_previous_action_and_reward:
    return tensor.PreviousActionAndReward(environment)
  return environment


def make_road(
  experience: experience_lib.Experience, num_environments: int, seed: int
) -> rollouts.ProgramRoad:
  """Makes what carries experience inside a program.

  Args:
    num_environments: Over all actors.
    seed: Seeds the choice of items.

  Raises:
    SettingError: If it is of a kind that no program carries.
  """
  items, table = experience.items, experience.table
  kind, is_plain = type(items), len(experience.tables) == 1
  if kind is adders.Sequences and table.is_queue and is_plain:
    return rollouts.UnrollRoad(experience, num_environments)
  is_plain &= table.remover == 'fifo' and not table.max_times_sampled
  if is_plain and table.rate_limit and table.sampler in _SAMPLERS:
    if kind is adders.Transitions:
      return rollouts.TransitionRoad(experience, num_environments, seed)
    if kind is adders.Sequences:
      return rollouts.SequenceRoad(experience, num_environments, seed)
  raise SettingError(
    'topology',
    'must be another one for this experience: a compiled program keeps '
    'Transitions and Sequences in one table, a queue or one that is sampled '
    'uniformly or by priority and whose oldest items leave; got '
    f'{kind.__name__} and {table}.',
  )
