"""What an experiment needs to run as one compiled program."""

from repertory.agents import builder as builder_lib
from repertory.components import adders, rollouts
from repertory.components import experience as experience_lib
from repertory.components.settings import SettingError
from repertory.environments import registry, tensor
from repertory.launch import experiment as experiment_lib
from repertory.launch.host import machine_memory

# How a table inside a program may be sampled.
_SAMPLERS = ('uniform', 'prioritized')

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
  road = make_road(experience, experiment.num_environments, 0)
  total = machine_memory.total_bytes()
  if road.num_bytes > total:
    in_words = machine_memory.gigabytes
    fitting = int(experience.table.max_size * total / road.num_bytes)
    raise SettingError(
      experience.setting_names.get('max_size', 'max_size'),
      f'must be at most some {fitting:,}, or the machine must have more memory '
      f'than {in_words(total)}: a compiled program keeps the moments of '
      f'{experience.table.max_size:,} items as they are, in '
      f'{in_words(road.num_bytes)}.',
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
  if isinstance(items, adders.Sequences) and table.is_queue:
    return rollouts.UnrollRoad(experience, num_environments)
  if table.rate_limit is not None and table.sampler in _SAMPLERS:
    if isinstance(items, adders.Transitions):
      return rollouts.TransitionRoad(experience, num_environments, seed)
    if isinstance(items, adders.Sequences):
      return rollouts.SequenceRoad(experience, num_environments, seed)
  raise SettingError(
    'topology',
    f'must be another one for items of {type(items).__name__} in a table '
    f'sampled by {table.sampler}.',
  )
