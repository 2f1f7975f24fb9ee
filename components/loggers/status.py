"""Status of a run at one point in time, as shown on the dashboard."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple


@dataclasses.dataclass(frozen=True)
class TableStatus:
  """Status of a replay table.

  Attributes:
    name: The table's name.
    size: Number of items.
    max_size: Capacity in items.
    blocked: Side currently blocked by the rate limiter, 'insert' or 'sample';
      '' if neither.
    inserts: Total number of items inserted.
  """

  name: str
  size: int
  max_size: int
  blocked: str = ''
  inserts: int = 0


class NodeStart(NamedTuple):
  """A starting node.

  Attributes:
    name: Name of the node.
    doing: Its current activity, like 'compiling its update'; '' if unknown.
    since_seconds: Elapsed time of the run when it was started.
  """

  name: str
  doing: str
  since_seconds: float


@dataclasses.dataclass(frozen=True)
class Status:
  """Status of a run. None means unknown or not applicable.

  Attributes:
    title: Description of the run, like 'dqn on catch, distributed (threads)'.
    steps: Environment steps so far, of all actors.
    max_steps: Environment steps at which the run ends.
    episodes: Finished episodes, of all actors.
    mean_return: Mean undiscounted return of the last (at most 100) episodes.
    num_returns: Number of episodes in this mean.
    steps_per_second: Recent environment steps per second.
    learner_steps: Updates so far.
    learner_steps_per_second: Recent updates per second.
    samples_per_insert: Items sampled from replay per item inserted, so far.
    target_samples_per_insert: Target of the rate limiter.
    tables: The replay tables.
    variables_age_steps: Age of the actors' variables, in learner steps.
    variables_age_seconds: The same in seconds.
    targets_per_second: Recent targets per second from Bellman updaters.
    target_age_steps: Age, in learner steps, of the variables behind the latest
      learned targets.
    evaluation_return: Mean undiscounted return of the latest evaluation.
    evaluation_steps: Environment steps at that evaluation.
    best_return: Mean undiscounted return of the best evaluation.
    best_steps: Environment steps at that evaluation.
    elapsed_seconds: Time since the run started, in seconds.
    seconds_left: Estimated remaining time at the present rate, in seconds.
    nodes: Name and state of each node, like ('actor/0', 'running').
    starts: The starting nodes.
    inference: The latest row of each inference server, as in its log.
    learners: The latest row of each gossiping learner, as in its log.
    learners_distance: Their total distance from their mean.
    num_restarts: Number of node restarts; None if never.
    message: Further messages for the user; '' if none.
    stopped_early: Reason for ending the run before all its steps; '' if it does
      not.
    not_recorded: Message on steps that could not be recorded, with the reason;
      '' if all were.
  """

  title: str
  steps: int = 0
  max_steps: int | None = None
  episodes: int = 0
  mean_return: float | None = None
  num_returns: int = 0
  steps_per_second: float = 0.0
  learner_steps: int = 0
  learner_steps_per_second: float = 0.0
  samples_per_insert: float | None = None
  target_samples_per_insert: float | None = None
  tables: tuple[TableStatus, ...] = ()
  variables_age_steps: float | None = None
  variables_age_seconds: float | None = None
  targets_per_second: float | None = None
  target_age_steps: float | None = None
  evaluation_return: float | None = None
  evaluation_steps: int | None = None
  best_return: float | None = None
  best_steps: int | None = None
  elapsed_seconds: float = 0.0
  seconds_left: float | None = None
  nodes: tuple[tuple[str, str], ...] = ()
  starts: tuple[NodeStart, ...] = ()
  inference: tuple[Mapping[str, Any], ...] = ()
  learners: tuple[Mapping[str, Any], ...] = ()
  learners_distance: float | None = None
  num_restarts: int | None = None
  message: str = ''
  stopped_early: str = ''
  not_recorded: str = ''

  def with_messages(self, *messages: str) -> 'Status':
    """Returns a copy with other messages; empty ones are left out."""
    message = '; '.join(filter(None, messages))
    return dataclasses.replace(self, message=message)
