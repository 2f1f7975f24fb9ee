"""Evaluator: measures the return of a policy apart from training."""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from repertory.components import actors, learners, variables
from repertory.components.actors import environment_loop, episode_metrics
from repertory.environments import wrappers
from repertory.launch.coordination import reports
from repertory.launch.experiments import environment_batches
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node, policies


class EvaluationSetup(NamedTuple):
  """Environment loop and evaluated policy of an evaluator.

  `save` returns the policy of the last evaluation, see
  `learners.save_exported`. `refresh` copies the learner's newest variables into
  the policy, which keeps them until the next call; an inference server updates
  its own policy.
  """

  loop: environment_loop.EnvironmentLoop
  close: Callable[[], None]
  save: Callable[[], Mapping[str, np.ndarray]]
  refresh: Callable[[], None] = lambda: None


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
    evaluation: EvaluationSetup | None,
  ):
    """Schedules the first evaluation."""
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
    self._evaluation = evaluation
    if evaluation is not None:
      evaluation.loop.add_observer(self._note_progress)
      _measure(session, evaluation.loop)

  @property
  def description(self):
    return {'episodes': self._num_episodes}

  @property
  def environment_seconds(self) -> float:
    """Duration of the current environment step; 0 if none is running."""
    if self._evaluation is None:
      return 0.0
    return self._evaluation.loop.environment_seconds

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
    if self._evaluation is None:
      return
    self._evaluation.refresh()
    self._progressed_at = time.monotonic()
    episodes = self._evaluation.loop.run_episodes(
      self._num_episodes, self._should_stop
    )
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
      self._coordinator.keep_best(self.name, self._evaluation.save())

  def close(self) -> None:
    """Closes the evaluation environments and the variable client."""
    if self._evaluation is not None:
      self._evaluation.close()

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


def make(
  context: node.Context,
  session: session_lib.Session,
  follow: Callable[[], tuple[Any, variables.VariableClient]],
) -> EvaluatorNode:
  """Makes an evaluator in the same thread, which may have no episodes to run.

  Args:
    follow: Makes the evaluated network and its variable client.
  """
  if not session.experiment.evaluation_episodes:
    return EvaluatorNode(context, session, None)
  with contextlib.ExitStack() as stack:  # Close all, even if one fails.
    network, variable_client = follow()
    stack.callback(variable_client.close)
    context.report_start('making its environments, and compiling its policy')
    environments = make_environments(session)
    stack.callback(environments.close)
    actor = actors.PolicyActor(
      policies.make_evaluation_policy(session, network),
      session.spec.observations,
      policies.evaluation_ids(session),
      jit_compile=session.jit_compile,
    )
    loop = environment_loop.EnvironmentLoop(environments, actor)
    close = stack.pop_all().close

  def save():
    return learners.save_exported(
      'policy', network.variables, variable_client.version
    )

  def refresh():
    variable_client.update(wait=True)

  setup = EvaluationSetup(loop, close, save, refresh)
  return EvaluatorNode(context, session, setup)


def make_environments(
  session: session_lib.Session,
) -> environment_batches.EnvironmentBatch:
  """Makes evaluation environments; their ids follow those of training."""
  first = session.experiment.num_environments
  ids = policies.evaluation_ids(session)
  return session.make_environments([first + i for i in ids], evaluates=True)


def _measure(
  session: session_lib.Session, loop: environment_loop.EnvironmentLoop
) -> None:
  """Adds the session's metrics to the episodes of an evaluation loop."""
  loop.read_info(session.experiment.info)
  makers = session.experiment.evaluation_metrics
  if not makers:
    return
  extends = session.experiment.builder.observes_previous_action_and_reward
  original = wrappers.previous_action.original if extends else None
  loop.measure(
    episode_metrics.EpisodeMetrics(
      makers, len(policies.evaluation_ids(session)), original
    )
  )
