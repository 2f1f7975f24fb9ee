"""Measures how well a policy does, apart from training."""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from repertory.components import (
  actors,
  environment_loop,
  episode_metrics,
  learners,
  variables,
)
from repertory.environments import previous_action
from repertory.launch.coordination import reports
from repertory.launch.nodes import node, policies
from repertory.launch.runs import environment_batches
from repertory.launch.runs import session as session_lib


class Evaluation(NamedTuple):
  """What runs the episodes of evaluations.

  Attributes:
    loop: Over environments of its own, not those that are trained on.
    close: Ends what it needs.
    save: Returns the policy of the last evaluation, see
      `learners.save_exported`.
    refresh: Makes the learner's newest variables those of the policy; they stay
      until it is called again. Does nothing where others see to that.
  """

  loop: environment_loop.EnvironmentLoop
  close: Callable[[], None]
  save: Callable[[], Mapping[str, np.ndarray]]
  refresh: Callable[[], None] = lambda: None


class EvaluatorNode(node.Node):
  """Measures the evaluation policy now and then.

  Attributes:
    evaluated_at: Environment steps before the last evaluation; None if there
      was none.
  """

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    evaluation: Evaluation | None,
  ):
    """Keeps the parts.

    Args:
      evaluation: Runs the episodes; None if there are to be none.
    """
    experiment = session.experiment
    self.name = context.name
    self._coordinator = context.coordinator
    self._stop = context.stop
    self._max_steps = experiment.max_steps
    self._timeout_seconds = experiment.timeout_seconds
    self._progressed_at = time.monotonic()
    self._steps = 0
    self.evaluated_at: int | None = None
    self._num_episodes = experiment.evaluation_episodes
    self._period = experiment.evaluation_period or max(
      1, experiment.max_steps // 10
    )
    self._next = self._period * (session.counts['steps'] // self._period + 1)
    self._evaluation = evaluation
    if evaluation is not None:
      evaluation.loop.add_observer(self._note_progress)
      measure(session, evaluation.loop)

  @property
  def description(self):
    return {'episodes': self._num_episodes}

  @property
  def next_at(self) -> int:
    """Environment steps at which the next evaluation is due."""
    return self._next

  @property
  def total_steps(self) -> int:
    """Steps of its environment batch since it started."""
    return self._steps

  @property
  def environment_seconds(self) -> float:
    """How long its environments have been at a step; 0 if at none."""
    if self._evaluation is None:
      return 0.0
    return self._evaluation.loop.environment_seconds

  def run(self) -> None:
    """Evaluates until it has seen the learner's last variables."""
    while not self._stop.wait(reports.PERIOD_SECONDS):
      directive = self.report()
      is_last = directive.phase == reports.EVALUATING
      if is_last or self.is_due(directive.steps):
        self.evaluate(directive.steps)
      if is_last:
        return

  def report(self) -> reports.Directive:
    return self._coordinator.poll(self.name, self.environment_seconds)

  def is_due(self, steps: int) -> bool:
    """Returns whether `steps` has passed a multiple of the period.

    At the end of the run an evaluation comes anyway.
    """
    return self._next <= steps < self._max_steps

  def evaluate(self, steps: int) -> None:
    """Runs the episodes of an evaluation and reports them.

    Args:
      steps: Environment steps so far; the next evaluation is due a period on.
    """
    self._next = self._period * (steps // self._period + 1)
    if self._evaluation is None:
      return
    self._evaluation.refresh()
    episodes = self._run_episodes(self._evaluation)
    if episodes is None:
      return
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
    """Ends all threads."""
    if self._evaluation is not None:
      self._evaluation.close()

  def _run_episodes(
    self, evaluation: Evaluation
  ) -> list[environment_loop.Episode] | None:
    """Returns the episodes of an evaluation; None if it was stopped."""
    self._progressed_at = time.monotonic()
    episodes = evaluation.loop.run_episodes(
      self._num_episodes, self._should_stop
    )
    return episodes if len(episodes) == self._num_episodes else None

  def _should_stop(self) -> bool:
    self._steps += 1
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


def make_evaluation(
  context: node.Context,
  session: session_lib.Session,
  network: Any,
  followed: variables.FollowedVariables,
) -> Evaluation:
  """Makes what evaluates a network that is in the same thread.

  Args:
    context: The evaluating node's.
    session: Has evaluation episodes.
    followed: Keeps the network's variables fresh.
  """
  context.tell_start('making its environments, and compiling its policy')
  environments = make_environments(session)
  loop = make_loop(session, network, environments)

  def close():
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(environments.close)
      stack.callback(followed.close)

  def save():
    return learners.save_exported('policy', network.variables, followed.version)

  return Evaluation(loop, close, save, lambda: followed.update(wait=True))


def make_loop(
  session: session_lib.Session, network: Any, environments: Any
) -> environment_loop.EnvironmentLoop:
  """Makes a loop that evaluates a network.

  Args:
    environments: What `make_environments` returns, or what wraps it.
  """
  ids = policies.evaluation_ids(session)
  policy = policies.make_evaluation_policy(session, network)
  actor = actors.PolicyActor(
    policy,
    session.spec.observations,
    ids,
    jit_compile=session.jit_compile,
  )
  return environment_loop.EnvironmentLoop(environments, actor)


def make_environments(
  session: session_lib.Session,
) -> environment_batches.EnvironmentBatch:
  """Makes environments to evaluate in, of ids beyond those of training."""
  first = session.experiment.num_environments
  ids = policies.evaluation_ids(session)
  return session.make_environments([first + i for i in ids], evaluates=True)


def measure(
  session: session_lib.Session, loop: environment_loop.EnvironmentLoop
) -> None:
  """Adds the session's metrics to the episodes of a loop that evaluates."""
  loop.read_info(session.experiment.info)
  makers = session.experiment.evaluation_metrics
  if not makers:
    return
  extends = session.experiment.builder.observes_previous_action_and_reward
  original = previous_action.original if extends else None
  loop.measure(
    episode_metrics.EpisodeMetrics(
      makers, len(policies.evaluation_ids(session)), original
    )
  )
