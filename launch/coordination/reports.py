"""Messages between nodes and the coordinator. Needs no TensorFlow."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

# Phases of a run. A stopped or failed run skips those in between.
ACTING = 'acting'
LABELING = 'labeling'  # Actors are done; the last targets are computed.
LEARNING = 'learning'  # Targets are done; the learner uses the last batches.
EVALUATING = 'evaluating'  # The learner is done.
DONE = 'done'
PHASES = (ACTING, LABELING, LEARNING, EVALUATING, DONE)
STOPPING = 'stopping'  # Interrupted, or a node failed.

# Labels of the rows of inference servers, Bellman updaters and gossiping
# learners.
INFERENCE = 'inference'
TARGETS = 'bellman_updaters'
GOSSIP = 'gossip'

# Heartbeat period of nodes.
PERIOD_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class HeartbeatReply:
  """Reply to a heartbeat: state of the run and instructions to the node.

  Attributes:
    phase: One of `PHASES`, or `STOPPING`.
    steps: Environment steps so far.
    is_acting_delayed: Whether acting waits for nodes that are starting or
      restarting, which may take longer than other timeouts.
    is_ending: Whether the run ends before all its steps are taken; actors stop
      as soon as possible.
  """

  phase: str
  steps: int
  is_acting_delayed: bool = False
  is_ending: bool = False


@dataclasses.dataclass(frozen=True)
class ActorReport:
  """Heartbeat of an actor: its work since the previous one.

  Attributes:
    steps: Environment steps.
    total_steps: Environment steps since its start.
    episodes: Return, length and `info` values of each finished episode.
    environment_seconds: Duration of the current environment step or reset; 0 if
      none is running.
    version: Learner steps of the variables in use; −1 for the learner's own.
    age_seconds: Time since these variables were fetched.
    num_unrecorded: Environment steps missing in its recording since the
      previous report.
    unrecorded_reason: Cause of the write failure.
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
  """State of a run and its nodes, for the launcher's supervision.

  Attributes:
    status: `loggers.Status`, for the display.
    phase: One of `PHASES`, or `STOPPING`.
    finished: Names of the nodes that are done or failed.
    overdue: Problem of each node that hangs, by name.
    idle_seconds: Time without an environment step, a learner step or an
      evaluation; 0 outside of acting.
    slowest: Node whose latest progress is the oldest; None before any
      progress.
  """

  status: Any
  phase: str
  finished: Sequence[str]
  overdue: Mapping[str, str]
  idle_seconds: float
  slowest: str | None
