"""Evaluation results, and the checkpoint of the best policy."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import policy_description
from repertory.launch.experiments import session as session_lib


class EvaluationResult(NamedTuple):
  """Mean return of an evaluation, and training steps when it ended."""

  episode_return: float
  steps: int


class Evaluations:
  """Tracks the latest and the best evaluation, and saves the best policy.

  The best is taken over all runs of a directory that resume one another. Among
  equal returns, the first is the best. `warning` is the reason why an earlier
  run's best cannot be read, or ''.
  """

  def __init__(self, session: session_lib.Session):
    self._checkpointer = checkpointing.Checkpointer(session.best_directory, 1)
    self._spec, self._transport = session.spec, session.transport
    self._are_errors_fatal = session.experiment.checkpoint_errors == 'raise'
    self.latest: EvaluationResult | None = None
    self.best: EvaluationResult | None = None
    self.warning = ''
    if session.is_resumed:
      self._load_best()

  def take(
    self,
    returns: Sequence[float],
    lengths: Sequence[int],
    metrics: Mapping[str, Sequence[float]],
    steps: int,
  ) -> tuple[dict[str, float], bool]:
    """Returns the log row of an evaluation, and whether it is the best."""
    mean = sum(returns) / len(returns)
    variance = sum((r - mean) ** 2 for r in returns) / len(returns)
    self.latest = EvaluationResult(mean, steps)
    row = {
      'episode_return': mean,
      'episode_return_deviation': variance**0.5,
      'episode_return_min': min(returns),
      'episode_return_max': max(returns),
      'episode_length': sum(lengths) / len(lengths),
      **{name: sum(values) / len(values) for name, values in metrics.items()},
      'count': len(returns),
    }
    return row, self.best is None or mean > self.best.episode_return

  def keep(
    self, policy: Mapping[str, np.ndarray], state: Mapping[str, Any]
  ) -> str:
    """Saves the policy of the latest evaluation, with a run state, as the best.

    Returns the reason of a write failure, after which the previous best
    remains, or raises CheckpointWriteError, as chosen by `checkpoint_errors`.
    """
    latest = cast(EvaluationResult, self.latest)  # `take` is called first.
    counts = {
      **state['counts'],
      'steps': latest.steps,
      'learner_steps': int(policy['learner_steps']),
    }
    state = {**state, 'counts': counts, 'evaluation': latest._asdict()}
    description = policy_description.describe(
      state, self._spec, self._transport
    )
    try:
      self._checkpointer.save(policy, state, policy=description)
    except OSError as error:
      problem = f'best policy not saved: {error}'
      if self._are_errors_fatal:
        raise checkpointing.CheckpointWriteError(problem) from error
      return problem
    self.best = latest
    return ''

  def figures(self) -> dict[str, Any]:
    """Returns the display figures of evaluations."""
    latest_return, latest_steps = self.latest or (None, None)
    best_return, best_steps = self.best or (None, None)
    return {
      'evaluation_return': latest_return,
      'evaluation_steps': latest_steps,
      'best_return': best_return,
      'best_steps': best_steps,
    }

  def _load_best(self) -> None:
    try:
      kept = self._checkpointer.load()
    except checkpointing.CheckpointError as error:
      problem = error.problem
      self.warning = f'the best evaluation so far cannot be read: {problem}'
    else:
      if kept is not None:
        self.best = EvaluationResult(**kept.state['evaluation'])
