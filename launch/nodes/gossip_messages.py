"""Messages between gossip learners and the gossip node."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from repertory.components import gossip, replay


class LearnerReport(NamedTuple):
  """Report of a learner.

  Attributes:
    learner_steps: Its learner steps so far.
    episode_return: Mean return of its latest episodes; None before the first.
    tables: Status of its own tables, by name.
    figures: Gossip figures; None without neighbors.
  """

  learner_steps: int
  episode_return: float | None
  tables: Mapping[str, replay.TableInfo]
  figures: gossip.Figures | None = None


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
