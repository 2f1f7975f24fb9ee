"""What the dashboard shows: the state of a training run at one moment."""

import dataclasses

_SIDES = ('', 'insert', 'sample')


@dataclasses.dataclass(frozen=True)
class TableStatus:
  """A replay table.

  Attributes:
    name: The table's name.
    size: Items it holds.
    max_size: Items it can hold.
    blocked: Which side its rate limiter makes wait now, 'insert' or 'sample';
      '' if neither.
    inserts: Items it has taken so far.

  Raises:
    ValueError: If `blocked` is none of these.
  """

  name: str
  size: int
  max_size: int
  blocked: str = ''
  inserts: int = 0

  def __post_init__(self):
    if self.blocked not in _SIDES:
      raise ValueError(
        f'blocked: expected one of {_SIDES}, found {self.blocked!r}'
      )


@dataclasses.dataclass(frozen=True)
class InferenceStatus:
  """An inference server, lately.

  Attributes:
    name: The name of its node.
    rows_per_second: Environments acted for, per second.
    rows_per_batch: Mean of those that a network call served.
    fill: Share of the computed rows that were not padding.
    wait_ms: Median milliseconds that a request waited for its batch.
    run_ms: Median milliseconds of a network call.
    transport_ms: Median milliseconds of the rest of a round trip.
    adding_share: Share of the time in which an adder was at work or waited for
      the rate limiter.
  """

  name: str
  rows_per_second: float
  rows_per_batch: float
  fill: float
  wait_ms: float
  run_ms: float
  transport_ms: float
  adding_share: float


@dataclasses.dataclass(frozen=True)
class LearnerStatus:
  """One of several learners that mix with one another, lately.

  Attributes:
    name: The name of its node.
    learner_steps: Its updates so far.
    mean_return: Mean undiscounted return of its last episodes; None before the
      first has ended.
    evaluation_return: The same of its latest evaluation.
    distance: From the mean of all learners, in the Euclidean norm.
    messages_per_second: That came from neighbors.
    age_seconds: How old that was which it mixed in last; None before the first.
  """

  name: str
  learner_steps: int
  mean_return: float | None
  evaluation_return: float | None
  distance: float
  messages_per_second: float
  age_seconds: float | None


@dataclasses.dataclass(frozen=True)
class NodeStart:
  """A node that is being started.

  Attributes:
    name: The node's.
    doing: What it is at, like 'compiling its update'; '' if that is unknown.
    since_seconds: Elapsed time of the run when it was started.
  """

  name: str
  doing: str
  since_seconds: float


@dataclasses.dataclass(frozen=True)
class Status:
  """A training run. None stands for what is unknown or does not apply.

  Attributes:
    title: What runs, like 'dqn on catch, distributed (threads)'.
    steps: Environment steps so far, of all actors.
    max_steps: Environment steps at which the run ends.
    episodes: Episodes that have ended, of all actors.
    mean_return: Mean undiscounted return of the last (at most 100) episodes.
    num_returns: Episodes that this mean is over.
    steps_per_second: Environment steps per second, lately.
    learner_steps: Updates so far.
    learner_steps_per_second: Updates per second, lately.
    samples_per_insert: Items drawn from replay per item inserted, so far.
    target_samples_per_insert: What the rate limiter aims at.
    tables: The replay tables.
    variables_age_steps: How old the variables are that actors act with, in
      updates the learner has made since.
    variables_age_seconds: The same in seconds.
    targets_per_second: Targets that others than the learner compute per second,
      lately.
    target_age_steps: How old the variables were that the latest targets were
      computed with when they were learned, in updates.
    evaluation_return: Mean undiscounted return of the latest evaluation.
    evaluation_steps: Environment steps when that was taken.
    best_return: Mean undiscounted return of the best evaluation.
    best_steps: Environment steps when that was taken.
    elapsed_seconds: Time since the run started, in seconds.
    seconds_left: Time to go at the present rate, in seconds.
    nodes: Name and state of each node, like ('actor/0', 'running').
    starts: Those of the nodes that are being started.
    hosts: Name and host of each node, where there are several hosts.
    inference: The inference servers.
    learners: Those that mix, if there are several.
    learners_distance: How far they all are from their mean together.
    learners_distance_bound: How far they would be at the most if all mixed at
      the same moments, see `gossip.Trail`.
    num_restarts: How often nodes were started again; None if never.
    message: What else the user should know now; '' if nothing.
    stopped_early: Why the run ends before all its steps are taken; '' if it
      does not.
    not_recorded: Message on steps that could not be recorded, with the reason;
      '' if there are none.
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
  hosts: tuple[tuple[str, str], ...] = ()
  inference: tuple[InferenceStatus, ...] = ()
  learners: tuple[LearnerStatus, ...] = ()
  learners_distance: float | None = None
  learners_distance_bound: float | None = None
  num_restarts: int | None = None
  message: str = ''
  stopped_early: str = ''
  not_recorded: str = ''

  def with_messages(self, *messages: str) -> 'Status':
    """Returns it with other messages: those of these that are not empty."""
    message = '; '.join(filter(None, messages))
    return dataclasses.replace(self, message=message)
