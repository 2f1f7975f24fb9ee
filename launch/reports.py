"""What nodes tell the coordinator, and what they hear; needs no TensorFlow."""

import dataclasses
from collections.abc import Sequence

# Phases of a run, in order. A stopped or failed run skips those in between.
ACTING = 'acting'
LEARNING = 'learning'  # Actors are done; the learner uses what they left.
EVALUATING = 'evaluating'  # The learner is done.
DONE = 'done'
STOPPING = 'stopping'  # Interrupted, or a node failed.


@dataclasses.dataclass(frozen=True)
class Directive:
  """What a node learns when it reports.

  Attributes:
    phase: Of the run.
    steps: Environment steps so far.
    learner_steps: Updates so far.
  """

  phase: str
  steps: int
  learner_steps: int


@dataclasses.dataclass(frozen=True)
class ActorReport:
  """What an actor did since its last report.

  Attributes:
    steps: Environment steps.
    episodes: Return and length of each that ended.
    version: Learner steps of the variables it acts with; −1 if they are the
      learner's own.
    age_seconds: Time since it got them.
  """

  steps: int
  episodes: Sequence[tuple[float, int]]
  version: int = -1
  age_seconds: float = 0.0
