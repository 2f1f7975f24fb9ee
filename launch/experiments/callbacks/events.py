"""Events of a run, the arguments of callbacks; needs no TensorFlow."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
  from repertory.components import loggers

# Outcomes of a run, see `End`.
DONE, STOPPED_EARLY = 'done', 'stopped early'
INTERRUPTED, FAILED = 'interrupted', 'failed'


@dataclasses.dataclass(frozen=True)
class RunEvent:
  """Start of a run, new or resumed.

  Attributes:
    title: Title of the run, as displayed.
    directory: The experiment's directory, which has `logs/` and `checkpoints/`.
    settings: All settings of the run, as plain values by name: the fields of
      the experiment, except for its storage, which may contain a password; the
      agent's as `config.<name>`; `topology` and `topology_settings`; and, if
      the topology has several nodes, `launch_type` and `launch_settings`.
    steps: Environment steps before this start.
    learner_steps: Learner steps before this start.
    episodes: Training episodes before this start.
    elapsed_seconds: Run time before this start.
    is_resumed: Whether the run resumes from a checkpoint.
    num_restarts: Restarts of nodes in this run, before this start.
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
class EpisodesEvent:
  """Training episodes that ended since the last report.

  Attributes:
    returns: Sums of rewards, undiscounted. [K]
    lengths: Steps of each. [K]
    num_episodes: Episodes of the run so far, including these.
    steps: Environment steps of the run at the last of them.
    learner_steps: Learner steps, likewise.
    elapsed_seconds: Run time, likewise.
    metrics: Entries of the environments' info in the last step of each episode,
      by the keys in the experiment's `info`. [K] each.
  """

  returns: np.ndarray
  lengths: np.ndarray
  num_episodes: int
  steps: int
  learner_steps: int
  elapsed_seconds: float
  metrics: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

  @classmethod
  def join(cls, bundles: 'Sequence[EpisodesEvent]') -> 'EpisodesEvent':
    """Concatenates several reports."""
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
class EvaluationEvent:
  """An evaluation that has ended.

  Attributes:
    returns: Sums of the rewards of its episodes, undiscounted. [K]
    lengths: Steps of each. [K]
    metrics: The experiment's `evaluation_metrics` of each, by name. [K] each.
    is_best: Whether its mean return is the highest so far.
    steps: Environment steps of training when it ended.
    learner_steps: Learner steps, likewise.
    elapsed_seconds: Run time, likewise.
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
class EndEvent:
  """End of a run.

  Attributes:
    outcome: 'done', 'stopped early', 'interrupted' or 'failed'.
    reason: Reason for the stop or failure; '' if the outcome is 'done'.
    status: The last status.
  """

  outcome: str
  reason: str
  status: 'loggers.Status'
