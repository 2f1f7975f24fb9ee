"""What evaluations found, and the policy of the best."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components import checkpointing
from repertory.launch.runs import session as session_lib


class Evaluated(NamedTuple):
  """How an evaluation went.

  Attributes:
    episode_return: The mean undiscounted return of its episodes.
    steps: Environment steps that training had taken when it ended.
  """

  episode_return: float
  steps: int


class Evaluations:
  """Knows the latest evaluation and the best, and keeps the best one's policy.

  The best counts over all runs of a directory that resume one another. Of equal
  ones the first counts.

  Attributes:
    latest: This run's newest; None before the first.
    best: None before the first.
    warning: Why what an earlier run kept does not count, if so.
  """

  def __init__(self, session: session_lib.Session):
    """Looks what earlier runs kept, if the session is resumed."""
    self._checkpointer = checkpointing.Checkpointer(session.best_directory, 1)
    self._are_errors_fatal = session.experiment.checkpoint_errors == 'raise'
    self.latest: Evaluated | None = None
    self.best: Evaluated | None = None
    self.warning = ''
    if session.is_resumed:
      self._look_back()

  def take(
    self,
    returns: Sequence[float],
    lengths: Sequence[int],
    metrics: Mapping[str, Sequence[float]],
    steps: int,
  ) -> tuple[dict[str, float], bool]:
    """Notes an evaluation.

    Args:
      returns: Those of its episodes.
      lengths: Likewise.
      metrics: The experiment's own metrics likewise, by name.
      steps: Environment steps that training has taken.

    Returns:
      Its row in the log, and whether it is the best so far, so that `keep` is
      to be called.
    """
    mean = sum(returns) / len(returns)
    variance = sum((r - mean) ** 2 for r in returns) / len(returns)
    self.latest = Evaluated(mean, steps)
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
    """Keeps the policy of the latest evaluation as that of the best.

    Args:
      policy: What was evaluated, see `learners.save_exported`.
      state: What a checkpoint holds of the run as a whole.

    Returns:
      Why it could not be written, so that what was kept before still counts; ''
      if it was.

    Raises:
      UnwrittenError: If it cannot be written and that is to end the run.
    """
    latest = self.latest
    if latest is None:
      raise RuntimeError('There was no evaluation whose policy could be kept.')
    counts = {
      **state['counts'],
      'steps': latest.steps,
      'learner_steps': int(policy['learner_steps']),
    }
    evaluation = latest._asdict()
    try:
      self._checkpointer.save(
        policy, {**state, 'counts': counts, 'evaluation': evaluation}
      )
    except OSError as error:
      problem = f'best policy not kept: {error}'
      if self._are_errors_fatal:
        raise checkpointing.UnwrittenError(problem) from error
      return problem
    self.best = latest
    return ''

  def figures(self) -> dict[str, Any]:
    """Returns what the display shows of them, by its names."""
    nothing = (None, None)
    latest_return, latest_steps = self.latest or nothing
    best_return, best_steps = self.best or nothing
    return {
      'evaluation_return': latest_return,
      'evaluation_steps': latest_steps,
      'best_return': best_return,
      'best_steps': best_steps,
    }

  def _look_back(self) -> None:
    try:
      kept = self._checkpointer.load()
    except checkpointing.CheckpointError as error:
      problem = error.for_readers
      self.warning = f'the best evaluation so far does not count: {problem}'
      return
    if kept is not None:
      self.best = Evaluated(**kept.state['evaluation'])
