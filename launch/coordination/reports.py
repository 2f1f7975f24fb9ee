"""What nodes tell the coordinator, and what they hear; needs no TensorFlow."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

# Phases of a run. A stopped or failed run skips those in between.
ACTING = 'acting'
LABELING = 'labeling'  # Actors are done; targets of what they left are found.
LEARNING = 'learning'  # So are all targets; the learner uses what is left.
EVALUATING = 'evaluating'  # The learner is done.
DONE = 'done'
PHASES = (ACTING, LABELING, LEARNING, EVALUATING, DONE)
STOPPING = 'stopping'  # Interrupted, or a node failed.

# Labels of rows on each of several learners: how it gossips, and what it does
# by itself where their mean is evaluated.
GOSSIP, EVALUATIONS_OF_EACH = 'gossip', 'evaluations_of_learners'

# How often nodes report, and hear what is to be done.
PERIOD_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Directive:
  """What a node learns when it reports.

  Attributes:
    phase: One of `PHASES`, or `STOPPING`.
    steps: Environment steps so far.
    learner_steps: Updates so far.
    is_acting_delayed: Whether nobody can act, for all who are needed for that
      are being started, or started again, which may take longer than a wait.
    is_ending: Whether the run ends before all its steps are taken: who acts is
      done as soon as it can be.
  """

  phase: str
  steps: int
  learner_steps: int
  is_acting_delayed: bool = False
  is_ending: bool = False


@dataclasses.dataclass(frozen=True)
class ActorReport:
  """What an actor did since its last report.

  Attributes:
    steps: Environment steps.
    total_steps: Environment steps since it started.
    episodes: Return and length of each that ended, and the values of the
      experiment's `info`.
    environment_seconds: How long its environments have been at the step or
      reset that they are at; 0 if at none.
    version: Learner steps of the variables it acts with; −1 if they are the
      learner's own.
    age_seconds: Time since it got them.
    num_unrecorded: Environment steps that its recording lacks, since the last
      report.
    unrecorded_reason: Why they could not be written.
  """

  steps: int
  total_steps: int
  episodes: Sequence[tuple[float, ...]]
  environment_seconds: float = 0.0
  version: int = -1
  age_seconds: float = 0.0
  num_unrecorded: int = 0
  unrecorded_reason: str = ''


@dataclasses.dataclass(frozen=True)
class Observation:
  """What the launcher goes by.

  Attributes:
    status: `loggers.Status`, for the display.
    phase: One of `PHASES`, or `STOPPING`.
    finished: Names of the nodes that have done their part.
    overdue: Nodes that hang, and what is wrong with each.
    idle_seconds: Time without an environment step, an update or an evaluation,
      while there should be some.
    laggard: Who got on longest ago; None before anybody did.
  """

  status: Any
  phase: str
  finished: Sequence[str]
  overdue: Mapping[str, str]
  idle_seconds: float
  laggard: str | None
