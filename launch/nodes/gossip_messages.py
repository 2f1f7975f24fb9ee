"""Messages between gossip learners and the gossip node."""

import dataclasses
from collections.abc import Mapping

from repertory.components import gossip, replay


@dataclasses.dataclass(frozen=True)
class LearnerReport:
  """Report of a learner.

  Attributes:
    learner_steps: Its learner steps so far.
    iterations: Its iterations (environment batch steps) in this run.
    episode_return: Mean return of its latest episodes; None before the first.
    tables: Status of its own tables, by name.
    figures: Gossip figures; None without neighbors.
    missed: Number of the newest order that came too late, see `Orders`.
    wants_end: Whether it was asked to end early.
  """

  learner_steps: int
  iterations: int
  episode_return: float | None
  tables: Mapping[str, replay.TableInfo]
  figures: gossip.Figures | None = None
  missed: int = 0
  wants_end: bool = False


@dataclasses.dataclass(frozen=True)
class Orders:
  """Instructions to a learner.

  Attributes:
    number: Number of the ordered checkpoint; 0 for none.
    save_at: Iteration at which to save; None for as soon as possible.
    end_at: Iteration at which to end; None to take all steps.
    wants_variables: Whether to send its parameters.
  """

  number: int = 0
  save_at: int | None = None
  end_at: int | None = None
  wants_variables: bool = False


@dataclasses.dataclass(frozen=True)
class Label:
  """Label of a learner's checkpoint.

  Attributes:
    number: Number of its order; 0 for the final checkpoint.
    iterations: Iterations of the learner in this run.
    is_last: Whether the learner has taken all its steps.
  """

  number: int
  iterations: int
  is_last: bool


@dataclasses.dataclass(frozen=True)
class LearnerStart:
  """Initial state of a learner.

  Attributes:
    has_checkpoint: Whether it resumes from its own checkpoint.
    whole: Packed mean of parameters and optimizer state, if the run's
      checkpoint has no part for each learner; else b''.
    counts: Steps, episodes and learner steps of the initial state.
    learned: Packed mean parameters of all, or all other, learners; b'' if
      unknown.
    takes_learned: Whether it begins with `learned` instead of the parameters of
      its checkpoint.
  """

  has_checkpoint: bool = False
  whole: bytes = b''
  counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
  learned: bytes = b''
  takes_learned: bool = False
