"""Evaluation results, and the checkpoint of the best policy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import policy_description
from repertory.launch.experiments import session as session_lib


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
    # Mean `episode_return`, and training `steps` at the end.
    self._latest: dict[str, Any] = {}
    self._best: dict[str, Any] = {}
    self.warning = ''
    try:
      kept = self._checkpointer.load() if session.is_resumed else None
    except checkpointing.CheckpointError as error:
      problem = error.problem
      self.warning = f'the best evaluation so far cannot be read: {problem}'
    else:
      self._best = kept.state['evaluation'] if kept else {}

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
    self._latest = {'episode_return': mean, 'steps': steps}
    row = {
      'episode_return': mean,
      'episode_return_deviation': variance**0.5,
      'episode_return_min': min(returns),
      'episode_return_max': max(returns),
      'episode_length': sum(lengths) / len(lengths),
      **{name: sum(values) / len(values) for name, values in metrics.items()},
      'count': len(returns),
    }
    return row, not self._best or mean > self._best['episode_return']

  def keep(
    self, policy: Mapping[str, np.ndarray], state: Mapping[str, Any]
  ) -> str:
    """Saves the policy of the latest evaluation, with a run state, as the best.

    Returns the reason of a write failure, after which the previous best
    remains, or raises CheckpointWriteError, as chosen by `checkpoint_errors`.
    """
    latest = self._latest
    counts = {
      **state['counts'],
      'steps': latest['steps'],
      'learner_steps': int(policy['learner_steps']),
    }
    state = {**state, 'counts': counts, 'evaluation': latest}
    description = policy_description.describe(
      state, self._spec, self._transport
    )
    # Courier sends arrays of rank 0 as numbers.
    arrays = {name: np.asarray(value) for name, value in policy.items()}
    try:
      self._checkpointer.save(arrays, state, policy=description)
    except OSError as error:
      problem = f'best policy not saved: {error}'
      if self._are_errors_fatal:
        raise checkpointing.CheckpointWriteError(problem) from error
      return problem
    self._best = latest
    return ''

  def figures(self) -> dict[str, Any]:
    """Returns the display figures of evaluations."""
    return {
      'evaluation_return': self._latest.get('episode_return'),
      'evaluation_steps': self._latest.get('steps'),
      'best_return': self._best.get('episode_return'),
      'best_steps': self._best.get('steps'),
    }
