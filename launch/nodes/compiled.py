"""Requirements of compiled loops on the experiment."""

from repertory.agents.interface import builder as builder_lib
from repertory.components import adders, anakin
from repertory.components.config.settings import SettingError
from repertory.components.replay import tables
from repertory.components.transports import experience as experience_lib
from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.platform import machine_memory


def check(experiment: experiment_lib.Experiment) -> None:
  """Raises SettingError unless a loop can be compiled of the experiment."""
  builder = experiment.builder
  if builder.needs_demonstrations:
    raise SettingError(
      'topology',
      f'must be another one for {type(builder).__name__}, which learns from '
      'demonstrations beside the replay table.',
    )
  for name in ('record', 'demonstrations', 'info'):
    if getattr(experiment, name):
      raise SettingError(
        name,
        'must be left out where a compiled loop steps the environments; got '
        f'{getattr(experiment, name)!r}.',
      )
  for name in ('make_adder', 'make_learner'):  # It would ignore overrides.
    if getattr(type(builder), name) is not getattr(builder_lib.Builder, name):
      raise SettingError(
        'topology',
        f'must be another one for {type(builder).__name__}, which overrides '
        f'{name}: a compiled loop replaces that method.',
      )
  make_environment(experiment)


def check_experience(
  experiment: experiment_lib.Experiment, experience: experience_lib.Experience
) -> None:
  """Raises SettingError unless a compiled loop can store the experience."""
  num_environments, table = experiment.num_environments, experience.table
  transport = make_transport(experience, num_environments, 0)
  name = experience.called['max_size']
  least = table.min_size + num_environments - 1
  if not table.is_queue and table.max_size < least:
    raise SettingError(
      name,
      f'must be at least {least}: a compiled loop removes items for one step '
      f'of all {num_environments} environments at once, and {table.min_size} '
      f'must be left to learn from; got {table.max_size}.',
    )
  # A checkpoint copies the whole table, to be consistent.
  needed = transport.num_bytes * (2 if experiment.checkpoint_replay else 1)
  items = f'{table.max_size:,}, whose steps take in a compiled loop'
  machine_memory.require(name, needed, items)


def make_environment(
  experiment: experiment_lib.Experiment,
) -> tensor.TensorEnvironment:
  """Makes the experiment's environment as a tensor environment."""
  environment = registry.make_tensor_environment(experiment.environment_factory)
  if experiment.builder.observes_previous_action_and_reward:
    return tensor.TensorPreviousActionAndReward(environment)
  return environment


def make_transport(
  experience: experience_lib.Experience, num_environments: int, seed: int
) -> anakin.CompiledTransport:
  """Makes the transport in a compiled loop, or raises SettingError."""
  items, table = experience.items, experience.table
  kind, is_plain = type(items), len(experience.tables) == 1
  if kind is adders.Sequences and table.is_queue and is_plain:
    return anakin.UnrollTransport(experience, num_environments)
  is_plain &= table.remover == 'fifo' and not table.max_times_sampled
  is_plain &= table.sampler in ('uniform', tables.PRIORITIZED)
  if is_plain and table.rate_limit:
    if kind is adders.Transitions:
      return anakin.TransitionTransport(experience, num_environments, seed)
    if kind is adders.Sequences:
      return anakin.SequenceTransport(experience, num_environments, seed)
  raise SettingError(
    'topology',
    'must be another one for this experience: a compiled loop keeps '
    'Transitions and Sequences in one table, which is a queue, or is sampled '
    'uniformly or by priority and removes the oldest items; got '
    f'{kind.__name__} and {table}.',
  )
