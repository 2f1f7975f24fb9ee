"""What several learners have learned in the mean."""

import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from repertory.components import gossip, learners, types

# Between the name of a learner and what is asked of it.
_OF = ':'


def name_of(node: str, group: str) -> str:
  """Returns what is asked for to get the variables of one learner."""
  return f'{node}{_OF}{group}'


def mean(states: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
  """Returns the mean of arrays by name; of what is counted, the largest."""
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


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
  """Packs arrays for a call."""
  return pickle.dumps(dict(arrays), pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> dict[str, np.ndarray]:
  """Returns what was packed; nothing of b''."""
  return pickle.loads(packed) if packed else {}


def with_steps(
  state: Mapping[str, np.ndarray], steps: int
) -> dict[str, np.ndarray]:
  """Returns what a learner saved, as after another number of updates."""
  return {**state, 'learner_steps': np.asarray(steps, np.int64)}


def distance(
  state: Mapping[str, np.ndarray], center: Mapping[str, np.ndarray]
) -> float:
  """Returns how far arrays are from others; 0 if there are no others."""
  if not center:
    return 0.0
  layout = gossip.Layout(state)
  return float(np.linalg.norm(layout.join(state) - layout.join(center)))


class SeveralLearners:
  """Knows what each learner has learned, as it told last.

  For checkpoints it is what all have learned: `save` gives the mean of what was
  saved of each.

  Attributes:
    steps: Updates of all together.
    begun_with: What they began with, by name; empty if each began by itself.
    changes: Grows when somebody has told something, or is left out.
  """

  def __init__(
    self,
    names: Sequence[str],
    saved: Callable[[], Iterable[Mapping[str, np.ndarray]]],
    saved_counts: Callable[[], Mapping[str, int]] = dict,
  ):
    """Knows nothing yet.

    Args:
      names: The learners'.
      saved: Returns the arrays that were saved of each.
      saved_counts: Returns the counts of all by then, if others are newer.
    """
    self.steps = 0
    self.begun_with: dict[str, np.ndarray] = {}
    self.changes = 0
    self._names = list(names)
    self._saved = saved
    self._saved_counts = saved_counts
    self._steps_of: dict[str, int] = dict.fromkeys(names, 0)
    self._learned: dict[str, dict[str, np.ndarray]] = {}
    self._away: set[str] = set()
    self._lock = threading.Lock()

  def save(self) -> dict[str, np.ndarray]:
    # Where all saved at one turn, they have gone on since.
    steps = self._saved_counts().get('learner_steps', self.steps)
    return with_steps(mean(self._saved()), steps)

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    self.begun_with = dict(state)
    self.steps = int(state['learner_steps'])

  def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
    self.begun_with = dict(state)

  def begin(self, name: str, steps: int) -> None:
    """Notes at which learner step one begins, perhaps anew."""
    with self._lock:
      self._steps_of[name] = steps

  def count(self, name: str, steps: int) -> None:
    """Takes the updates of a learner so far.

    What one that was started again has to make a second time counts, too. What
    was told before, and comes later, does not.
    """
    with self._lock:  # Several tell at the same time.
      self.steps += max(0, steps - self._steps_of[name])
      self._steps_of[name] = max(steps, self._steps_of[name])

  def tell(self, name: str, learned: dict[str, np.ndarray]) -> None:
    """Takes what a learner has learned."""
    with self._lock:
      self._learned[name] = learned
      self._away.discard(name)
      self.changes += 1

  def leave_out(self, name: str) -> None:
    """Counts a learner that is gone no more, until it tells anew.

    If all are gone, what they told last is all that is known, and counts.
    """
    with self._lock:
      if name not in self._away:
        self._away.add(name)
        self.changes += 1

  def is_away(self, name: str) -> bool:
    """Returns whether a learner is gone, and has told nothing since."""
    return name in self._away

  @property
  def have_told(self) -> bool:
    """Whether anybody has told what it has learned."""
    return bool(self._learned)

  def learned(self) -> dict[str, np.ndarray]:
    """Returns what all have learned in the mean, or what they began with."""
    return self.learned_by_others('') or learners.select_learned(
      self.begun_with
    )

  def learned_by_others(self, name: str) -> dict[str, np.ndarray]:
    """Returns what all but one have learned in the mean; {} if that is none."""
    with self._lock:
      return mean(
        state for other, state in self._present().items() if other != name
      )

  def distances(self) -> dict[str, float]:
    """Returns how far each is from the mean of all, in the Euclidean norm."""
    with self._lock:
      told = self._present()
    if not told:
      return {}
    layout = gossip.Layout(next(iter(told.values())))
    vectors = {name: layout.join(state) for name, state in told.items()}
    center = np.mean(list(vectors.values()), 0)
    return {
      name: float(np.linalg.norm(vector - center))
      for name, vector in vectors.items()
    }

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays per name: of the mean, or see `name_of`.

    It is empty for a learner that has told nothing yet, or is gone.

    Raises:
      KeyError: If a name is unknown.
    """
    return [self._get(name) for name in names]

  def _present(self) -> dict[str, dict[str, np.ndarray]]:
    """Returns what is learned by those who are there; with the lock held."""
    present = {
      name: state
      for name, state in self._learned.items()
      if name not in self._away
    }
    return present or dict(self._learned)

  def _get(self, name: str) -> types.Nest:
    if name == 'learner_steps':
      return np.asarray(self.steps, np.int64)
    if name == 'max_priority':
      return np.asarray(1.0, np.float64)  # Of tables that are not here.
    node, of, group = name.rpartition(_OF)
    if of:
      with self._lock:
        state = self._present().get(node)
      if state is None:
        return []
    else:
      state = self.learned()
    found = [a for key, a in state.items() if key.startswith(f'{group}/')]
    if not found:
      known = sorted({key.split('/')[0] for key in state})
      raise KeyError(f"Unknown variables '{name}'; there are {known}.")
    return found
