"""What learners that gossip tell the node that keeps them together."""

import dataclasses
from collections.abc import Mapping

from repertory.components import gossip, replay


@dataclasses.dataclass(frozen=True)
class LearnerReport:
  """How a learner is.

  Attributes:
    learner_steps: Its updates so far.
    turns: Steps of its environment batch in this run.
    episode_return: Mean of its last episodes; None before the first has ended.
    tables: Its own, by name.
    figures: How it gossips; None if it is alone.
    missed: The newest order that came too late for it, see `Orders`.
    wants_end: Whether it has been told that the run ends before all its steps.
  """

  learner_steps: int
  turns: int
  episode_return: float | None
  tables: Mapping[str, replay.TableStatus]
  figures: gossip.Figures | None = None
  missed: int = 0
  wants_end: bool = False


@dataclasses.dataclass(frozen=True)
class Orders:
  """What a learner is to do.

  Attributes:
    number: Which checkpoint is wanted; 0 for none.
    save_at: After so many turns it saves; None for as soon as it can.
    end_at: After so many turns it ends; None to go on to its last step.
    wants_variables: Whether it is to send what it has learned.
  """

  number: int = 0
  save_at: int | None = None
  end_at: int | None = None
  wants_variables: bool = False


@dataclasses.dataclass(frozen=True)
class Label:
  """What a learner's checkpoint is.

  Attributes:
    number: Which order it is for; 0 at the learner's end.
    turns: How many the learner has taken in this run.
    is_last: Whether it has taken all its steps.
  """

  number: int
  turns: int
  is_last: bool


@dataclasses.dataclass(frozen=True)
class Beginning:
  """With what a learner begins.

  Attributes:
    parcel_bytes: Size of the checkpoint that it goes on from; None for none.
    whole: All that is learned, packed, of a run that cannot be gone on with by
      each: also the state of the optimizer; b'' for nothing.
    counts: Steps, episodes and learner steps that this counts for.
    learned: What all, or all others, have learned in the mean, packed; b'' if
      that is not known.
    takes_learned: Whether it begins with that, and not with its checkpoint's.
  """

  parcel_bytes: int | None = None
  whole: bytes = b''
  counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
  learned: bytes = b''
  takes_learned: bool = False
