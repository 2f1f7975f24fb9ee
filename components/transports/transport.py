"""Interface of experience transports, and their learner side."""

import abc
import contextlib
import copy
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from repertory.components import adders, replay
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local, waits
from repertory.components.runtime import signals
from repertory.components.transports import experience as experience_lib

# Kind, in checkpoints, of the experience that a compiled program keeps itself,
# see `anakin`.
COMPILED = 'program'

# Kind of tables in this process, see `InProcessTransport`.
IN_PROCESS = 'local'

# Kinds of tables behind a server, see `ReverbTransport` and `ServedTransport`.
REVERB = 'reverb'
SERVED = 'served'

# Kind of recorded data, see `OfflineTransport`.
OFFLINE = 'data'

# Kind of a run with several learners, each with its own transport.
SHARES = 'parts'


# A batch that is due arrives at once, unless it was lost.
BATCH_TIMEOUT_SECONDS = 5.0

# Interval of checks for the minimum number of items.
_POLL_SECONDS = 0.1

# Creates the adder that cuts steps of a number of slots into items.
AdderFactory: TypeAlias = Callable[
  [experience_lib.Experience, replay.Writer, int], adders.Adder
]


def make_adder(
  experience: experience_lib.Experience, writer: replay.Writer, batch_size: int
) -> adders.Adder:
  """Creates the adder that the experience describes; an `AdderFactory`."""
  return experience.items.make_adder(writer, batch_size)


class Snapshots(abc.ABC):
  """Writes snapshots of the experience, and describes them.

  `str` gives its location, for errors.

  Attributes:
    has_learners: Whether every checkpoint includes it, even without replay,
      because each of several learners needs it to resume.
  """

  has_learners = False

  @abc.abstractmethod
  def flush(self) -> None:
    """Waits for priority updates; raises their errors.

    It is the first call of a checkpoint, and sets its point in time.
    """

  def prepare(self) -> bool:
    """Returns whether a checkpoint can begin now, or after another update."""
    return True

  def counts(self) -> Mapping[str, int]:
    """Returns the run's counts of the checkpoint, where it lags behind."""
    return {}

  @abc.abstractmethod
  def describe(self) -> dict[str, Any]:
    """Returns plain values that a restored snapshot must match."""

  @abc.abstractmethod
  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    """Raises a CheckpointError if restored state lacks some of `describe`."""

  @abc.abstractmethod
  def take_snapshot(self) -> Callable[[], str]:
    """Fixes the contents of a snapshot; returns a function that writes it.

    That may take long. It returns the folder, and may run in another thread.
    """

  @abc.abstractmethod
  def remove_snapshots(self) -> None:
    """Removes all snapshots, including incomplete ones."""


@dataclasses.dataclass(frozen=True)
class ActorState:
  """State of the actors at one point in time, for an exact resume.

  Attributes:
    saved: Serialized environments, policies and open episodes.
    counts: Steps and episodes of the run by then; empty if the reported counts
      match.
  """

  saved: bytes
  counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ActorStates:
  """State of the actors in snapshots of the table.

  Attributes:
    restored: State from the initial snapshot; empty without one.
    take: Returns the state for a new snapshot, between two updates of the
      learner; None if the actors are not at the same step.
  """

  restored: bytes = b''
  take: Callable[[], ActorState | None] = lambda: None


class Transport(abc.ABC):
  """Interface of experience transports, from actors to the learner.

  It has an actor side per adder, and one learner side; their creators close
  them. If separate nodes compute targets, it ends at those nodes, each with a
  learner side of it, and `learned` leads from them to the learner.

  Attributes:
    kind: Name in checkpoints: snapshots of one kind cannot be read by another.
    experience: Description of the experience up to this stage.
    place: Settings of waits.
    actors: State of the actors in snapshots.
  """

  kind: str

  def __init__(
    self,
    experience: experience_lib.Experience,
    adder_factory: AdderFactory,
    place: local.WaitPolicy,
    checkpoint_directory: str = '',
  ):
    """Takes the settings of waits, and the directory of snapshots.

    The place of tables behind a server is the connection to it, and the server
    has its snapshots in the directory.
    """
    self.experience = experience
    self.place = place
    self.actors = ActorStates()
    self._adder_factory = adder_factory
    self._checkpoint_directory = checkpoint_directory

  @property
  def learned(self) -> 'Transport':
    """The stage that ends at the learner, of `Experience.learned`."""
    later = copy.copy(self)
    later.experience = self.experience.learned
    return later

  def make_adder(
    self,
    batch_size: int,
    *,
    priority: Callable[[], float],
    version: Callable[[], int],
    max_pending_items: int | None = None,
  ) -> adders.Adder:
    """Creates an adder, the actor side of the transport.

    Args:
      batch_size: Slots of the environment batch.
      priority: Returns the priority of a new item.
      version: Returns the learner steps of the acting variables.
      max_pending_items: Maximum number of pending items without a wait; None
        for the experience's default.
    """
    each = self.experience.max_pending_items_per_environment
    if max_pending_items is None:
      max_pending_items = each * batch_size
    writer = self.make_writer(
      priority=priority, version=version, max_pending_items=max_pending_items
    )
    return self._adder_factory(self.experience, writer, batch_size)

  @abc.abstractmethod
  def make_writer(self, **settings: Any) -> replay.Writer:
    """Creates a writer for finished items, with settings of `replay.Writer`."""

  @abc.abstractmethod
  def make_batches(self) -> replay.Batches:
    """Creates the learner's batches, which take items at once."""

  @abc.abstractmethod
  def make_priorities(self, floor: float) -> replay.Priorities:
    """Creates the priority updates, with the smallest priority."""

  @abc.abstractmethod
  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name, that of actors first."""

  @abc.abstractmethod
  def take_snapshot(self, actors: ActorState | None) -> Callable[[], str]:
    """Fixes a snapshot, see `Snapshots`, with the state of the actors."""

  def remove_snapshots(self) -> None:
    """Removes all snapshots, including incomplete ones."""
    replay.remove_checkpoints(self._checkpoint_directory)

  def check_restored(
    self,
    checkpoint: checkpointing.Checkpoint,
    opened_with: Mapping[str, replay.TableInfo],
  ) -> None:
    """Raises a CheckpointError if tables, when opened, lacked some items."""
    for name, counts in checkpoint.state['tables'].items():
      found = opened_with.get(name, replay.TableInfo(0, 0, 0, 0))
      if found.inserts < counts['inserts'] or found.samples < counts['samples']:
        raise checkpointing.CheckpointError(
          f"Table '{name}' should resume from {counts['inserts']} inserts and "
          f'{counts["samples"]} samples, as in checkpoint {checkpoint.path}, '
          f'but {self.place} restored {found.inserts} and '
          f'{found.samples}.'
        )

  def is_exact(self, actors: ActorState | None) -> bool:
    """Returns whether a run with a snapshot would resume exactly."""
    return actors is not None

  def make_learner_side(self) -> 'LearnerSide':
    """Creates the learner side, which begins to take items at once."""
    return LearnerSide(self)


class LearnerSide(Snapshots):
  """Learner side: batches, replay ratio, priorities, and checkpoint state.

  Attributes:
    batches: Iterator over the learner's batches.
    priorities: Priority updates; None without priorities.
  """

  def __init__(self, transport: Transport):
    """Records the tables' status before batches prefetch."""
    self._transport = transport
    self._experience = transport.experience
    self._table = self._experience.table
    self._place = transport.place
    self._opened_with = self.statuses()
    self._timeout_start = 0.0
    self._starving_since = 0.0
    self._starving_at_step = -1
    self._actor_state: ActorState | None = None
    self._demonstrations: Any = None  # See `mix_in`.
    self.begin(0)
    self.batches = transport.make_batches()
    self.priorities: replay.Priorities | None = None
    if self._experience.min_priority is not None:
      floor = self._experience.min_priority
      self.priorities = transport.make_priorities(floor)

  def __str__(self) -> str:
    return str(self._place)

  def begin(self, learner_steps: int) -> None:
    """Starts counting at `learner_steps`, the updates of earlier runs."""
    self._replay_ratio = replay.ReplayRatio(
      self._table,
      self._experience.batch_size,
      samples=self._first_status.samples,
      learner_steps=learner_steps,
    )

  def mix_in(self, demonstrations: Any) -> None:
    """Adds `Demonstrations` to all batches; call it before taking a batch."""
    demonstrations.replayed = self.batches
    self.batches = self._demonstrations = demonstrations

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name."""
    return self._transport.statuses()

  def updates_due(
    self, learner_steps: int, num_items: int | None = None
  ) -> int:
    """Returns the number of learner steps due after `learner_steps`.

    `num_items` were added since the learner side was created; None to query the
    table.
    """
    if num_items is None:
      inserts = self._status().inserts
    else:
      inserts = self._first_status.inserts + num_items
    return self._replay_ratio.updates_due(learner_steps, inserts)

  def is_batch_due(self) -> bool:
    """Returns whether a batch is due for any of the table's clients."""
    status = self._status()
    due = self._table.sample_target(status.inserts) - status.samples
    return due >= self._experience.batch_size

  def wait_for_items(self) -> None:
    """Waits until the table holds enough items to be sampled.

    Raises:
      signals.Stopped: If the stop signal was set.
      TimeoutError: If for too long no new item came to any table.
    """
    table, place = self._table, self._place
    inserts, since = -1, time.monotonic()
    while True:
      statuses = self.statuses()
      found = statuses[table.name].inserts
      if found >= table.min_size:
        return
      all_inserts = sum(one.inserts for one in statuses.values())
      if all_inserts > inserts:
        inserts, since = all_inserts, time.monotonic()
      waited = time.monotonic() - max(since, self._timeout_start)
      if waited > place.timeout_seconds:
        raise TimeoutError(
          f'Waited {place.timeout_seconds:g} seconds for a new item in table '
          f"'{table.name}' of {place}; it has {found} and needs "
          f'{table.min_size}.'
        )
      if place.stop.wait(_POLL_SECONDS):
        raise signals.Stopped

  def reset_timeout(self) -> None:
    """Restarts the timeouts of waits, because no actor is running."""
    self._timeout_start = time.monotonic()
    self.batches.reset_timeout()

  def expect_batches(self, seconds: float = BATCH_TIMEOUT_SECONDS) -> None:
    """Sets the time after which a due batch counts as lost, from now on."""
    mixed = self._demonstrations
    batches = self.batches if mixed is None else mixed.replayed
    batches.batch_timeout_seconds = seconds

  def reset_count(self, learner_steps: int) -> int:
    """Restarts the count after `learner_steps`; returns the lost samples.

    Raises a TimeoutError if no batch has arrived for too long.
    """
    now = time.monotonic()
    if learner_steps != self._starving_at_step:
      self._starving_at_step, self._starving_since = learner_steps, now
    if now - self._starving_since > self._place.timeout_seconds:
      raise waits.no_batch(self._table, self._place, self._status)
    return self._replay_ratio.reset_count(learner_steps, self._status().samples)

  def flush(self) -> None:
    """Waits until the table has all priorities; raises their errors."""
    if self.priorities is not None:
      self.priorities.flush()
    self._actor_state = self._transport.actors.take()

  def counts(self) -> Mapping[str, int]:
    return self._actor_state.counts if self._actor_state else {}

  def describe(self) -> dict[str, Any]:
    """Returns the state that restored tables must match."""
    mixed = self._demonstrations
    tables = {
      name: {'inserts': table.inserts, 'samples': table.samples}
      for name, table in self.statuses().items()
    }
    return {
      'transport': self._transport.kind,
      **({'demonstrations': mixed.transport.sampler_state()} if mixed else {}),
      'bundle_sizes': self._experience.bundle_sizes,
      'tables': tables,
      'is_exact': self._transport.is_exact(self._actor_state),
    }

  def take_snapshot(self) -> Callable[[], str]:
    return self._transport.take_snapshot(self._actor_state)

  def remove_snapshots(self) -> None:
    self._transport.remove_snapshots()

  def check_restored(self, checkpoint: checkpointing.Checkpoint) -> None:
    self._transport.check_restored(checkpoint, self._opened_with)
    if self._demonstrations is not None:
      with local.reading(f'The state of demonstrations in {checkpoint.path}'):
        self._demonstrations.restore(checkpoint.state.get('demonstrations'))

  def close(self) -> None:
    """Ends a wait for a batch, and stops all threads."""
    with contextlib.ExitStack() as stack:  # Closes both, even on errors.
      if self.priorities is not None:
        stack.callback(self.priorities.close)
      stack.callback(self.batches.close)

  @property
  def _first_status(self) -> replay.TableInfo:
    return self._opened_with[self._table.name]

  def _status(self) -> replay.TableInfo:
    return self.statuses()[self._table.name]
