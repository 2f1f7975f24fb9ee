"""Mean of the parameters of several learners."""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from repertory.components import learners, types


def mean(states: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
  """Returns the mean of float arrays and the maximum of others, by name."""
  sums: dict[str, np.ndarray] = {}
  dtypes: dict[str, np.dtype] = {}
  count = 0
  for state in states:
    count += 1
    for name, array in state.items():
      is_float = np.issubdtype(array.dtype, np.floating)
      if name not in sums:
        dtypes[name] = array.dtype
        sums[name] = array.astype(np.float64) if is_float else array
      elif is_float:
        sums[name] = sums[name] + array
      else:
        sums[name] = np.maximum(sums[name], array)
  return {
    name: (total / count if total.dtype == np.float64 else total).astype(
      dtypes[name]
    )
    for name, total in sums.items()
  }


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

  @property
  def has_reports(self) -> bool:
    """Whether any learner has reported parameters."""
    return bool(self._learned)

  def learned(self) -> dict[str, np.ndarray]:
    """Returns the mean parameters of all learners, or the initial ones."""
    return self.learned_by_others('') or learners.select_learned(
      self.begun_with
    )

  def learned_by_others(self, name: str) -> dict[str, np.ndarray]:
    """Returns the mean parameters of all other learners; {} without any."""
    with self._lock:
      return mean(one for key, one in self._learned.items() if key != name)

  def distances(self) -> dict[str, float]:
    """Returns the Euclidean distance of each learner from the mean."""
    with self._lock:
      states = dict(self._learned)
    center = mean(states.values())
    return {
      name: math.sqrt(
        sum(
          float(np.square(array - center[key]).sum())
          for key, array in state.items()
          if np.issubdtype(array.dtype, np.floating)
        )
      )
      for name, state in states.items()
    }

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays of the mean per name; KeyError if unknown."""
    return [self._get(name) for name in names]

  def _get(self, name: str) -> types.Nest:
    if name == 'learner_steps':
      return np.asarray(self.steps, np.int64)
    if name == 'max_priority':
      return np.asarray(1.0, np.float64)  # Its tables are elsewhere.
    state = self.learned()
    found = [a for key, a in state.items() if key.startswith(f'{name}/')]
    if not found:
      known = sorted({key.split('/')[0] for key in state})
      raise KeyError(f"Unknown variables '{name}'; there are {known}.")
    return found
