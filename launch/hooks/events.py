"""What observers and loggers hear of a run; needs no TensorFlow."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
  from repertory.components import loggers

# How a run may end, see `End`.
DONE, STOPPED_EARLY = 'done', 'stopped early'
INTERRUPTED, FAILED = 'interrupted', 'failed'


@dataclasses.dataclass(frozen=True)
class Run:
  """A run that starts, or goes on where a checkpoint has it.

  Attributes:
    title: What the display calls it.
    directory: The experiment's; `logs/` and `checkpoints/` are in it.
    settings: All that it runs with, as plain values by name: the fields of the
      experiment, but for its storage, which may have a password in it;
      `config.<name>` of the agent; `topology` and `topology_settings`; and, if
      the topology has several nodes, `launch_type` and `launch_settings`.
    steps: Environment steps that were taken before.
    learner_steps: Updates likewise.
    episodes: Training episodes likewise.
    elapsed_seconds: How long that took.
    is_resumed: Whether it goes on from a checkpoint.
    num_restarts: How often nodes were started again in this run, before this
      start.
  """

  title: str
  directory: str
  settings: Mapping[str, Any]
  steps: int = 0
  learner_steps: int = 0
  episodes: int = 0
  elapsed_seconds: float = 0.0
  is_resumed: bool = False
  num_restarts: int = 0


@dataclasses.dataclass(frozen=True)
class Episodes:
  """Training episodes that have ended since the last ones were told.

  Attributes:
    returns: Sums of rewards, undiscounted. [K]
    lengths: Steps of each. [K]
    num_episodes: Episodes of the run so far, with these.
    steps: Environment steps when the last of them was told.
    learner_steps: Updates likewise.
    elapsed_seconds: Time of the run likewise.
    metrics: Entries of the environments' info in the last step of each episode,
      by the names that the experiment's `info` has. [K] each.
  """

  returns: np.ndarray
  lengths: np.ndarray
  num_episodes: int
  steps: int
  learner_steps: int
  elapsed_seconds: float
  metrics: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

  @property
  def num_bytes(self) -> int:
    """What they take in memory."""
    arrays = (self.returns, self.lengths, *self.metrics.values())
    return sum(array.nbytes for array in arrays)

  @classmethod
  def join(cls, bundles: 'Sequence[Episodes]') -> 'Episodes':
    """Returns several as one, as if they had been told together."""
    if len(bundles) == 1:
      return bundles[0]
    return dataclasses.replace(
      bundles[-1],
      returns=np.concatenate([one.returns for one in bundles]),
      lengths=np.concatenate([one.lengths for one in bundles]),
      metrics={
        name: np.concatenate([one.metrics[name] for one in bundles])
        for name in bundles[-1].metrics
      },
    )


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """An evaluation that has ended.

  Attributes:
    returns: Sums of the rewards of its episodes, undiscounted. [K]
    lengths: Steps of each. [K]
    metrics: The experiment's own metrics of each. By name, [K]
    is_best: Whether its mean return is above that of all before.
    steps: Environment steps that training had taken when it ended.
    learner_steps: Updates likewise.
    elapsed_seconds: Time of the run likewise.
  """

  returns: np.ndarray
  lengths: np.ndarray
  metrics: Mapping[str, np.ndarray]
  is_best: bool
  steps: int
  learner_steps: int
  elapsed_seconds: float

  @property
  def mean_return(self) -> float:
    return float(self.returns.mean())


@dataclasses.dataclass(frozen=True)
class End:
  """How a run ends.

  Attributes:
    outcome: 'done', 'stopped early', 'interrupted' or 'failed'.
    reason: Why it was stopped, or failed; '' if it is done.
    status: The last of the display.
  """

  outcome: str
  reason: str
  status: 'loggers.Status'
