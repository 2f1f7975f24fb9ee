"""Learner node that acts and learns in one compiled loop (Anakin)."""

import time

from repertory.agents.interface import builder as builder_lib
from repertory.components import adders, anakin
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib
from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.launch.coordination import reports
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import learning, node, policies
from repertory.launch.platform import machine_memory

# Target duration of a call, between which it reports and checks Ctrl-C.
_CALL_SECONDS = 0.25


class AnakinNode(learning.LearningNode):
  """Steps tensor environments and learns, several iterations per call.

  Attributes:
    total_steps: Environment steps since its start.
  """

  def __init__(self, context: node.Context, session: session_lib.Session):
    """Compiles the loop, and restores it if the session is resumed."""
    super().__init__(context, session)
    experiment = session.experiment
    self._num_environments = experiment.num_environments
    ids = range(self._num_environments)
    policy = policies.make_training_policy(context, session, self.network)
    self._policy_description = policy.describe(ids)
    context.report_start('making its environments')
    environment = make_environment(experiment)
    seeds = session.environment_seeds(ids)
    state, timestep = environment.reset(
      environment.initial_state(tensor.initial_counters(seeds))
    )
    transport = make_transport(
      session.experience,
      self._num_environments,
      session.make_seed(session_lib.SAMPLING),
    )
    self._num_steps = transport.num_steps
    context.report_start('compiling its loop')
    learner = anakin.CompiledLearner(
      policy, environment, transport, self._update,
      anakin.begin(timestep, state, policy.initial_state(ids)),
      logger=self._logger,
      jit_compile=session.jit_compile,
      divergence=session.divergence,
    )  # fmt: skip
    self._program = learner
    snapshots = anakin.CompiledSnapshots(learner, session.replay_directory)
    self._begin_with(learner, snapshots)
    self._num_iterations = 1
    self.total_steps = 0
    self._unreported = anakin.EpisodeBatch(0, [])

  @property
  def description(self):
    ids = list(range(self._num_environments))
    return {
      **super().description,
      'environment_ids': ids,
      **self._policy_description,
    }

  def advance(self, max_steps: int) -> int:
    """Runs some iterations, none after `max_steps`; returns their steps."""
    steps_per_iteration = self._num_steps * self._num_environments
    most = min(self._program.max_turns, -(-max_steps // steps_per_iteration))
    num_iterations = max(1, min(self._num_iterations, most))
    start = time.monotonic()
    ended = self._program.advance(num_iterations)
    seconds = time.monotonic() - start
    # At most doubled, since the first call may have included compilation.
    fitting = int(num_iterations * _CALL_SECONDS / max(seconds, 1e-6))
    self._num_iterations = max(1, min(fitting, 2 * num_iterations))
    self.total_steps += ended.num_steps
    before = self._unreported
    self._unreported = anakin.EpisodeBatch(
      before.num_steps + ended.num_steps, [*before.episodes, *ended.episodes]
    )
    self._publish()
    return ended.num_steps

  def report(self) -> reports.HeartbeatReply:
    ended, self._unreported = self._unreported, anakin.EpisodeBatch(0, [])
    self._coordinator.report_actor(
      self.name,
      reports.ActorReport(
        steps=ended.num_steps,
        total_steps=self.total_steps,
        episodes=ended.episodes,
      ),
    )
    return self._report_tables(self._program.statuses())


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
  kind = type(items)
  is_queue = table.is_queue and experience.min_priority is None
  if kind is adders.Sequences and is_queue:
    return anakin.UnrollTransport(experience, num_environments)
  if not table.is_queue:
    if kind is adders.Transitions:
      return anakin.TransitionTransport(experience, num_environments, seed)
    if kind is adders.Sequences:
      return anakin.SequenceTransport(experience, num_environments, seed)
  raise SettingError(
    'topology',
    'must be another one for this experience: a compiled loop keeps '
    'Transitions, and Sequences, which a queue must hold; got '
    f'{kind.__name__} and {table}.',
  )
