"""Evaluator: measures the return of a policy apart from training."""

import time
from collections.abc import Callable
from typing import Any

from repertory.components import actors, learners, variables
from repertory.components.actors import environment_loop, episode_metrics
from repertory.environments import wrappers
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node, policies


class EvaluatorNode(node.Node):
  """Evaluates the evaluation policy periodically.

  Attributes:
    evaluated_at: Environment steps at the last evaluation; None before the
      first.
    next_at: Environment steps at which the next evaluation is due.
    total_steps: Steps of its environment batch since its start.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    follow: Callable[[], tuple[Any, variables.VariableClient]],
  ):
    """Makes policy and environments, unless there are no episodes to run.

    Args:
      follow: Makes the evaluated network and its variable client.
    """
    experiment = session.experiment
    super().__init__(context)
    self._max_steps = experiment.max_steps
    self._timeout_seconds = experiment.timeout_seconds
    self._progressed_at = time.monotonic()
    self.total_steps = 0
    self.evaluated_at: int | None = None
    self._num_episodes = experiment.evaluation_episodes
    self._period = experiment.evaluation_period or max(
      1, experiment.max_steps // 10
    )
    self.next_at = self._period * (session.counts['steps'] // self._period + 1)
    self._loop: environment_loop.EnvironmentLoop | None = None
    if not self._num_episodes:
      return
    self._network, self._variables = follow()
    context.closing.callback(self._variables.close)
    context.report_start('making its environments, and compiling its policy')
    ids = policies.evaluation_ids(session)
    environments = session.make_environments(
      # Their ids follow those of training.
      [experiment.num_environments + i for i in ids],
      evaluates=True,
    )
    context.closing.callback(environments.close)
    actor = actors.PolicyActor(
      policies.make_evaluation_policy(session, self._network),
      session.spec.observations,
      ids,
      jit_compile=session.jit_compile,
    )
    self._loop = environment_loop.EnvironmentLoop(environments, actor)
    self._loop.add_observer(self._note_progress)
    self._loop.read_info(experiment.info)
    if makers := experiment.evaluation_metrics:
      extends = experiment.builder.observes_previous_action_and_reward
      original = wrappers.previous_action.original if extends else None
      self._loop.measure(
        episode_metrics.EpisodeMetrics(makers, len(ids), original)
      )

  @property
  def description(self):
    return {'episodes': self._num_episodes}

  @property
  def environment_seconds(self) -> float:
    """Duration of the current environment step; 0 if none is running."""
    return self._loop.environment_seconds if self._loop else 0.0

  def run(self) -> None:
    """Evaluates periodically, until it has evaluated the final variables."""
    while not self._stop.wait(reports.PERIOD_SECONDS):
      reply = self.report()
      is_last = reply.phase == reports.EVALUATING
      if is_last or self.is_due(reply.steps):
        self.evaluate(reply.steps)
      if is_last:
        return

  def report(self) -> reports.HeartbeatReply:
    return self._coordinator.poll(self.name, self.environment_seconds)

  def is_due(self, steps: int) -> bool:
    """Returns whether `steps` has passed a multiple of the period.

    The evaluation at the end of the run is always made, and not counted here.
    """
    return self.next_at <= steps < self._max_steps

  def evaluate(self, steps: int) -> None:
    """Runs and reports an evaluation; the next is due one period later."""
    self.next_at = self._period * (steps // self._period + 1)
    if self._loop is None:
      return
    self._variables.update(wait=True)
    self._progressed_at = time.monotonic()
    episodes = self._loop.run_episodes(self._num_episodes, self._should_stop)
    if len(episodes) < self._num_episodes:
      return  # It was interrupted.
    self.evaluated_at = steps
    is_best = self._coordinator.report_evaluation(
      [episode.episode_return for episode in episodes],
      [episode.length for episode in episodes],
      {
        name: [episode.metrics[name] for episode in episodes]
        for name in episodes[0].metrics
      },
    )
    if is_best:
      policy = learners.save_exported(
        'policy', self._network.variables, self._variables.version
      )
      self._coordinator.keep_best(self.name, policy)

  def _should_stop(self) -> bool:
    self.total_steps += 1
    if time.monotonic() - self._progressed_at > self._timeout_seconds:
      raise TimeoutError(
        f'Waited {self._timeout_seconds:g} seconds for an evaluation episode '
        'to end. If not every episode ends by itself, wrap the environment in '
        '`wrappers.StepLimit`.'
      )
    return self._stop.is_set()

  def _note_progress(self, episode: environment_loop.Episode) -> None:
    del episode
    self._progressed_at = time.monotonic()
