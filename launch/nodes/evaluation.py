"""Measures how well a policy does, apart from training."""

import time
from collections.abc import Callable, Sequence

import sonnet as snt

from repertory.components import (
  actors,
  core,
  environment_loop,
  programs,
  signals,
)
from repertory.components.inference import client
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.nodes import nodes, thin
from repertory.launch.runs import environment_batches
from repertory.launch.runs import session as session_lib

# Environments that evaluate together.
_BATCH_SIZE = 10


class EvaluatorNode:
  """Measures the evaluation policy now and then."""

  name = 'evaluator'

  def __init__(
    self,
    session: session_lib.Session,
    learner: core.VariableSource | str,
    coordinator: coordinator_lib.Coordinator,
    stop: signals.StopSignal,
  ):
    """Makes environments of its own, not those that are trained on.

    Args:
      session: What runs.
      learner: A `LearnerNode` of the same thread or the client of one, as for
        `ActorNode`; or the address of an inference server, which then acts.
      coordinator: Takes the results.
      stop: Ends an evaluation.
    """
    experiment = session.experiment
    self._max_steps = experiment.max_steps
    self._timeout_seconds = experiment.timeout_seconds
    self._progressed_at = time.monotonic()
    self._steps = 0
    self._coordinator = coordinator
    self._stop = stop
    self._num_episodes = experiment.evaluation_episodes
    self._period = experiment.evaluation_period or max(
      1, experiment.max_steps // 10
    )
    self._next = self._period * (session.counts['steps'] // self._period + 1)
    self._variable_client = None
    self._inference_client = None
    self._environment = None
    try:
      self._connect(session, learner, stop)
      # Who registers has started, and is started again when it fails.
      coordinator.register(self.name, {'episodes': self._num_episodes})
    except BaseException:
      self.close()
      raise

  def _connect(
    self,
    session: session_lib.Session,
    learner: core.VariableSource | str,
    stop: signals.StopSignal,
  ) -> None:
    """Makes the environments, and finds who acts in them."""
    if self._num_episodes == 0:
      return
    if isinstance(learner, str):
      self._environment = make_environments(session, self._num_episodes)
      self._loop, self._inference_client = thin.make_loop(
        learner,
        self._environment,
        session.spec,
        range(self._environment.batch_size),
        observers=[self._note_progress],
        actor=self.name,
        purpose=client.EVALUATION,
        timeout_seconds=self._timeout_seconds,
        stop=stop,
      )
    else:
      network, self._variable_client = nodes.take_network(
        session, learner, stop
      )
      self._loop, self._environment = make_loop(
        session, network, self._num_episodes, [self._note_progress]
      )

  @property
  def total_steps(self) -> int:
    """Steps of its environment batch since it started."""
    return self._steps

  @property
  def environment_seconds(self) -> float:
    """How long its environments have been at a step; 0 if at none."""
    return self._loop.environment_seconds if self._num_episodes else 0.0

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
    if self._num_episodes == 0:
      return
    if self._variable_client is not None:
      self._variable_client.update(wait=True)
    self._progressed_at = time.monotonic()
    episodes = self._loop.run_episodes(self._num_episodes, self._should_stop)
    if len(episodes) == self._num_episodes:
      self._coordinator.report_evaluation(
        [episode.episode_return for episode in episodes],
        [episode.length for episode in episodes],
      )

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

  def close(self) -> None:
    """Ends all threads."""
    if self._variable_client is not None:
      self._variable_client.close()
    if self._inference_client is not None:
      self._inference_client.close()
    if self._environment is not None:
      self._environment.close()


def make_policy(
  session: session_lib.Session, network: snt.Module, num_episodes: int
) -> tuple[programs.Policy, range]:
  """Makes the policy that evaluates, and the ids of its environments."""
  experiment = session.experiment
  ids = _ids(num_episodes)
  policy = experiment.builder.make_policy(
    network,
    session.spec,
    num_environments=len(ids),
    seed=session.make_seed(session_lib.EVALUATION_POLICY),
    steps_done=session.steps_per_environment,
    evaluation=True,
  )
  return policy, ids


def make_environments(
  session: session_lib.Session, num_episodes: int
) -> environment_batches.EnvironmentBatch:
  """Makes environments of ids beyond those that are trained on."""
  first = session.experiment.num_environments
  return session.make_environments([first + i for i in _ids(num_episodes)])


def _ids(num_episodes: int) -> range:
  return range(min(_BATCH_SIZE, num_episodes))


def make_loop(
  session: session_lib.Session,
  network: snt.Module,
  num_episodes: int,
  observers: Sequence[Callable[[environment_loop.Episode], None]] = (),
) -> tuple[
  environment_loop.EnvironmentLoop, environment_batches.EnvironmentBatch
]:
  """Makes what evaluates a network.

  Returns:
    The loop, and its environment batch to close.
  """
  policy, ids = make_policy(session, network, num_episodes)
  environment = make_environments(session, num_episodes)
  actor = actors.PolicyActor(
    policy,
    session.spec.observations,
    ids,
    jit_compile=session.experiment.builder.config.jit_compile,
  )
  loop = environment_loop.EnvironmentLoop(
    environment, actor, observers=observers
  )
  return loop, environment
