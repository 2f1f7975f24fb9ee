"""Gossip node: serves, checkpoints and logs several learners as one.

It receives the parameters of each learner, serves their mean, and writes joint
checkpoints. Learners mix their parameters without it.
"""

import dataclasses
import math
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repertory.components import learners, replay, types
from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import joint_checkpoints, learning, node

# Period of parameter reports and log rows of each learner, and of distances.
PERIOD_SECONDS = 1.0
_COUNTS = ('steps', 'episodes', 'learner_steps')
# Timeout of the final checkpoints of stopped learners.
_LAST_SECONDS = 60.0


class LearnerStart(NamedTuple):
  """Initial state of a learner, and its counts of steps and episodes.

  It resumes from its own checkpoint, or from the packed mean of parameters and
  optimizer states (`whole`), if any; then packed parameters (`learned`), if
  any, replace its own.
  """

  has_checkpoint: bool
  whole: bytes
  counts: Mapping[str, int]
  learned: bytes


class GossipNode(learning.CheckpointingNode):
  """Acts as the learner of the run; its variables are the mean of several."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    names: Sequence[str],
  ):
    """Restores a checkpoint, or the initial parameters of a warm start."""
    super().__init__(context, session)
    self._fencing = callers.Fencing(context.token)
    self._names = list(names)
    self._deposits = joint_checkpoints.LearnerDeposits(
      session.replay_directory, names
    )
    context.closing.callback(self._deposits.close)
    self._means = LearnerMean(names, self._deposits.saved)
    self._begin_with(self._means, self._deposits)
    if session.is_resumed and not all(map(self._deposits.kept_of, names)):
      self._coordinator.warn(
        self.name,
        'all begin with the mean of the checkpoint and empty tables, since it '
        'was written with another number of learners or another topology',
      )
    # Of each learner: its table statuses, and its distance from the mean.
    self._tables: dict[str, Mapping[str, replay.TableInfo]] = {}
    self._distances: Mapping[str, float] = {}
    self._compared_at = 0.0
    # Write errors of received checkpoints, not reported yet.
    self._unwritten: list[OSError] = []
    self._cached = learning.cached(
      self._get_variables, lambda: (self._means.changes, self._means.steps)
    )

  @property
  def description(self):
    return {**super().description, 'learners': self._names}

  @property
  def served(self) -> Mapping[str, Callable[..., Any]]:
    return {
      'get_variables': self._cached,
      'begin': self._begin,
      'read_checkpoint': self._read_checkpoint,
      'exchange': self._exchange,
      'deposit': self._deposit,
    }

  def run(self) -> None:
    """Writes joint checkpoints until all learners have ended."""
    while not (self._stop.is_set() or self._coordinator.have_actors_finished()):
      self._report_unwritten()
      self.checkpoint_if_due()
      self._stop.wait(reports.PERIOD_SECONDS)
    self._wait_for_actors(_LAST_SECONDS)
    self._report_unwritten()
    if self.is_untouched():
      return
    if self._deposits.is_complete:
      self.checkpoint()
      return
    self._coordinator.warn(
      self.name,
      'no final checkpoint was written, since not all learners have saved '
      'consistent states; the previous checkpoint, if any, is kept',
    )

  def report(self) -> reports.HeartbeatReply:
    now = time.monotonic()
    if self._tables and now - self._compared_at > PERIOD_SECONDS:
      self._compared_at = now
      self._distances = self._means.distances()
    return self._report_tables(self._mean_tables())

  def _report_unwritten(self) -> None:
    """Warns of checkpoints that could not be written, or raises."""
    while self._unwritten:
      self._checkpoints.fail(self._unwritten.pop(0))

  # Served to learners, which pass their caller identity first.

  def _begin(self, caller: Sequence[Any]) -> LearnerStart:
    """Returns the initial state of a learner."""
    name, generation, _ = self._admit(caller)
    kept = self._deposits.kept_of(name)
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    whole, learned = b'', {}
    if kept is not None:
      counts = dict(joint_checkpoints.read_state(kept)['counts'])
    elif self._resumed_from is not None:
      before = self._session.counts
      counts = {kind: before[kind] // len(self._names) for kind in _COUNTS}
      whole = _pack(self._means.begun_with)
    else:
      learned = self._means.learned()
    if generation:  # Its own, if any, are older.
      learned = self._means.reported() or learned
    self._means.begin(name, counts['learner_steps'])
    return LearnerStart(kept is not None, whole, counts, _pack(learned))

  def _read_checkpoint(self, caller: Sequence[Any], offset: int) -> bytes:
    kept = self._deposits.kept_of(self._admit(caller).name)
    if kept is None:
      raise ValueError(f'{caller[0]} must have a checkpoint, got none.')
    return joint_checkpoints.read_chunk(kept, offset)

  def _exchange(
    self,
    caller: Sequence[Any],
    learner_steps: int,
    tables: Mapping[str, replay.TableInfo],
    learned: bytes,
  ) -> float:
    """Takes packed parameters; returns the sender's distance from the mean."""
    name = self._admit(caller).name
    self._means.update(name, pickle.loads(learned))
    self._means.count(name, learner_steps)
    self._tables[name] = tables
    return self._distances.get(name, 0.0)

  def _deposit(self, caller: Sequence[Any], *chunk: Any) -> bool:
    """Receives a chunk of a learner's checkpoint; returns False on failure."""
    name = self._admit(caller).name
    try:
      self._deposits.receive(name, *chunk)
    except OSError as error:
      self._unwritten.append(error)
      return False
    return True

  def _admit(self, caller: Sequence[Any]) -> callers.Caller:
    admitted = callers.Caller(*caller)
    self._fencing.check(admitted)
    return admitted

  # Served to other nodes, and logged.

  def _get_variables(self, names: Sequence[str]):
    def are_there(seconds: float) -> bool:
      time.sleep(min(seconds, reports.PERIOD_SECONDS / 10))
      return bool(self._means.changes)

    if not (self._means.changes or self._means.begun_with):
      signals.wait_for(
        are_there,
        lambda: 'any learner to send its parameters',
        self._session.experiment.timeout_seconds,
        self._stop,
      )
    return self._means.get_variables(names)

  def _mean_tables(self) -> dict[str, replay.TableInfo]:
    """Returns the mean table statuses of all learners."""
    found = list(self._tables.values())  # Reports arrive concurrently.
    statuses = {}
    for table in self._session.tables:
      of_each = [tables[table.name] for tables in found] or [
        replay.TableInfo(0, table.max_size, 0, 0)
      ]
      means = {
        name: sum(getattr(one, name) for one in of_each) // len(of_each)
        for name in ('size', 'inserts', 'samples')
      }
      statuses[table.name] = dataclasses.replace(of_each[0], **means)
    return statuses


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
  """Serializes arrays for an RPC; b'' without arrays."""
  return pickle.dumps(dict(arrays)) if arrays else b''


def mean(states: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
  """Returns the mean of float arrays and the maximum of others, by name."""
  all_states = list(states)
  found = {}
  for name, first in all_states[0].items() if all_states else ():
    arrays = [state[name] for state in all_states]
    is_float = np.issubdtype(first.dtype, np.floating)
    center = np.mean(arrays, 0, np.float64) if is_float else np.max(arrays, 0)
    found[name] = np.asarray(center, first.dtype)
  return found


class LearnerMean:
  """Latest reported parameters of each learner, and their mean.

  In checkpoints it stands for the learner: `save` returns the mean of the saved
  states of all learners.

  Attributes:
    steps: Sum of the learner steps of all learners.
    begun_with: Initial arrays of all learners, by name; empty if each was
      initialized separately.
    changes: Counter of the reports of learners.
  """

  def __init__(
    self,
    names: Sequence[str],
    saved: Callable[[], Iterable[Mapping[str, np.ndarray]]],
  ):
    """Starts without reports; `saved` returns each learner's saved arrays."""
    self.steps = 0
    self.begun_with: dict[str, np.ndarray] = {}
    self.changes = 0
    self._saved = saved
    self._steps_of: dict[str, int] = dict.fromkeys(names, 0)
    self._learned: dict[str, dict[str, np.ndarray]] = {}
    self._lock = threading.Lock()

  def save(self) -> dict[str, np.ndarray]:
    steps = np.asarray(self.steps, np.int64)
    return {**mean(self._saved()), 'learner_steps': steps}

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    self.begun_with = dict(state)
    self.steps = int(state['learner_steps'])

  def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
    self.begun_with = dict(state)

  def begin(self, name: str, steps: int) -> None:
    """Sets the learner step at which a learner begins or resumes."""
    with self._lock:
      self._steps_of[name] = steps

  def count(self, name: str, steps: int) -> None:
    """Updates the learner steps of a learner.

    Steps that a restarted learner repeats count again. Reports that arrive out
    of order do not.
    """
    with self._lock:  # Learners report concurrently.
      self.steps += max(0, steps - self._steps_of[name])
      self._steps_of[name] = max(steps, self._steps_of[name])

  def update(self, name: str, learned: dict[str, np.ndarray]) -> None:
    """Stores the parameters of a learner."""
    with self._lock:
      self._learned[name] = learned
      self.changes += 1

  def reported(self) -> dict[str, np.ndarray]:
    """Returns the mean parameters of all learners; {} without reports."""
    with self._lock:
      return mean(self._learned.values())

  def learned(self) -> dict[str, np.ndarray]:
    """Returns the mean parameters of all learners, or the initial ones."""
    return self.reported() or learners.select_learned(self.begun_with)

  def distances(self) -> dict[str, float]:
    """Returns the Euclidean distance of each learner from the mean."""
    with self._lock:
      states = dict(self._learned)
    center = mean(states.values())
    return {
      name: math.hypot(
        *(
          float(np.linalg.norm(array - center[key]))
          for key, array in state.items()
          if np.issubdtype(array.dtype, np.floating)
        )
      )
      for name, state in states.items()
    }

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays of the mean per name; KeyError if unknown."""
    # The largest priority is 1: their tables are elsewhere.
    found: dict[str, types.Nest] = {
      'learner_steps': np.asarray(self.steps, np.int64),
      'max_priority': np.asarray(1.0, np.float64),
    }
    groups: dict[str, list[np.ndarray]] = {}
    for key, array in self.learned().items():
      groups.setdefault(key.split('/')[0], []).append(array)
    found.update(groups)
    for name in names:
      if name not in found:
        known = sorted(groups)
        raise KeyError(f"Unknown variables '{name}'; there are {known}.")
    return [found[name] for name in names]
