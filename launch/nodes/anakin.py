"""Learner node that acts and learns in one compiled loop (Anakin)."""

import time

from repertory.components import anakin
from repertory.environments import tensor
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import compiled, learning, node, policies

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
    environment = compiled.make_environment(experiment)
    seeds = session.environment_seeds(ids)
    state, timestep = environment.reset(
      environment.initial_state(tensor.initial_counters(seeds))
    )
    transport = compiled.make_transport(
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

  def run(self) -> None:
    raise NotImplementedError('A AnakinNode runs by calls of advance.')

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
