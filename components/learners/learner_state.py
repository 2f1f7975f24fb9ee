"""Learner state: variables, checkpoints and handling of divergence."""

import contextlib
import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import core, interfaces, loggers, types
from repertory.components.checkpoints import checkpointing
from repertory.components.config import choices
from repertory.components.runtime import compilation, nests

# The group of all variables that are neither exported nor learned.
_OTHER = 'other'


@dataclasses.dataclass(frozen=True)
class Divergence:
  """Reaction of a learner to a diverging update.

  Such an update is undone in any case.

  Attributes:
    action: 'stop' to raise, 'skip' to continue with the next batch.
    directory: Directory for the batch when the learner stops; None to save
      nothing.
    max_skips: Maximum number of consecutive skipped updates; the next one stops
      the learner.
  """

  action: str = 'stop'
  directory: str | None = None
  max_skips: int = 100

  def __post_init__(self):
    choices.check('action', self.action, choices.DIVERGENCE_ACTIONS)


class LearnerState(core.Learner):
  """Counts updates, serves variables, and saves and restores them.

  Subclasses run the updates. The variables, by name: the update's exports, and
  two numbers. 'learner_steps' is the version of all others; 'max_priority' is
  the largest priority so far, which new items get, so that each is sampled soon
  (https://arxiv.org/abs/1511.05952, algorithm 1).

  Attributes:
    compiled: The compiled function that runs the update.
  """

  compiled: compilation.CompiledFunction

  def __init__(
    self,
    update: interfaces.Update,
    logger: loggers.Logger | None = None,
    divergence: Divergence | None = None,
  ):
    """Starts at learner step 0.

    Args:
      update: The update, which owns all learned variables.
      logger: Gets the metrics of every step, and with skipping
        'skipped_updates', the number so far.
      divergence: Reaction to a non-finite update; by default the learner stops
        and saves nothing.
    """
    self._module = update
    self._logger = logger
    self._divergence = divergence or Divergence()
    self._num_skipped = 0
    self._num_skipped_in_a_row = 0
    self._steps = 0
    self._max_priority = 1.0
    # Served variables must all be of the same step.
    self._lock = threading.Lock()

  @property
  def steps(self) -> int:
    """Number of updates so far."""
    return self._steps

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    return self._max_priority

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns nests of arrays of one learner step, or raises a KeyError."""
    with self._lock:
      return [self._get(name) for name in names]

  def save(self) -> Mapping[str, np.ndarray]:
    """Returns the whole state, as arrays by name.

    Raises:
      FloatingPointError: If a variable is not finite.
    """
    with self._lock:
      state = {**self._read_all(), **self._numbers()}
    _check_finite(state)
    return state

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    """Resumes from the state that `save` returned.

    Raises:
      ValueError: Naming missing, unexpected or differently shaped arrays;
        nothing is changed then.
    """
    with self._lock:
      _assign(self._named_variables(), state, self._numbers())
      self._steps = int(state['learner_steps'])
      self._max_priority = float(state['max_priority'])

  def get_learned(self) -> dict[str, np.ndarray]:
    """Returns the arrays by name from which another learner may start."""
    with self._lock:
      return _to_arrays(self._learned)

  def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
    """Starts from the variables of `select_learned`, not the run's state.

    Raises:
      ValueError: Naming the arrays that do not fit; nothing is changed then.
    """
    with self._lock:
      _assign(self._learned, state)

  @functools.cached_property
  def _learned(self) -> dict[str, tf.Variable]:
    return name_learned(self._module)  # Takes a millisecond.

  def _numbers(self) -> dict[str, np.ndarray]:
    return {
      'learner_steps': np.asarray(self._steps, np.int64),
      'max_priority': np.asarray(self._max_priority, np.float64),
    }

  def _get(self, name: str) -> types.Nest:
    exports, numbers = self._module.exports, self._numbers()
    if name in numbers:
      return numbers[name]
    if name not in exports:
      known = sorted([*exports, *numbers])
      raise KeyError(f"Unknown variables '{name}'; known are {known}.")
    return [variable.numpy() for variable in exports[name]]

  def _named_variables(self) -> dict[str, tf.Variable]:
    """Names exports and learned variables by group, all others by order."""
    named = name_learned(self._module)
    known = {v.ref() for v in named.values()}
    others = [v for v in self._module.variables if v.ref() not in known]
    return {**named, **_name_variables({_OTHER: others})}

  def _read_all(self) -> dict[str, np.ndarray]:
    return _to_arrays(self._named_variables())

  def _judge(
    self,
    step: int,
    metrics: Mapping[str, Any],
    is_finite: bool,
    sample: Callable[[], types.Sample],
  ) -> None:
    """Counts an update that was undone, or raises an error to end the run."""
    if is_finite:
      self._num_skipped_in_a_row = 0
      return
    settings = self._divergence
    # Otherwise all further batches would be skipped.
    _check_finite(self._read_all())
    self._num_skipped += 1
    self._num_skipped_in_a_row += 1
    skips = self._num_skipped_in_a_row
    if settings.action == 'skip' and skips <= settings.max_skips:
      return
    when = f'learner step {step}'
    if settings.action == 'skip':
      when += f', as in all of the last {skips}'
    batch = sample()
    leaves = map(np.asarray, tree.flatten(batch))
    arrays = dict(zip(nests.paths_of(batch), leaves))
    bad = _find_nonfinite(arrays)
    listed = ', '.join(f'{name!r}: {value}' for name, value in metrics.items())
    raise FloatingPointError(
      f'Learning diverged in {when}: metrics, priorities, running statistics '
      f'and dual variables must be finite, got the metrics {{{listed}}}. '
      'The step was undone. Its batch '
      f'{self._save_batch(step, arrays)}; not finite in it: '
      f'{", ".join(bad) or "nothing"}. Try a smaller learning rate, clip '
      'gradients, look for extreme rewards, or skip such steps '
      '(on_divergence: skip).'
    )

  def _log(self, metrics: dict[str, Any]) -> None:
    """Logs the metrics of an update."""
    if self._divergence.action == 'skip':
      metrics['skipped_updates'] = self._num_skipped
    if self._logger is not None:
      self._logger.write(metrics)

  def _log_rows(self, columns: dict[str, np.ndarray]) -> None:
    """Logs metrics `[K]` of several updates, none of which was undone."""
    if not columns:
      return
    if isinstance(self._logger, loggers.Aggregate):
      if self._divergence.action == 'skip':
        size = len(next(iter(columns.values())))
        columns['skipped_updates'] = np.full([size], self._num_skipped)
      self._logger.write_rows(columns)
      return
    for row in zip(*columns.values()):
      self._log(dict(zip(columns, row)))

  def _save_batch(self, step: int, arrays: Mapping[str, np.ndarray]) -> str:
    """Saves a batch if configured; returns a phrase for the error."""
    directory = self._divergence.directory
    if directory is None:
      return 'was not saved'
    path = os.path.join(directory, f'step_{step}.npz')
    temporary = f'{path}.tmp'
    try:
      os.makedirs(directory, exist_ok=True)
      checkpointing.write_arrays(temporary, arrays.items())
      os.replace(temporary, path)
    except OSError as error:  # It must not hide the reason of the stop.
      with contextlib.suppress(OSError):
        os.remove(temporary)
      return f'could not be saved ({error})'
    return f'is in {path}'


def _find_nonfinite(arrays: Mapping[str, np.ndarray]) -> list[str]:
  """Returns the names of arrays that contain NaN or infinity."""
  return [
    name
    for name, array in arrays.items()
    if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all()
  ]


def _check_finite(state: Mapping[str, np.ndarray]) -> None:
  if names := _find_nonfinite(state):
    raise FloatingPointError(
      'Learning diverged: every variable of the learner must be finite, but '
      f'these are not: {", ".join(names)}. An update changed them although its '
      'metrics were finite: let it report the norms of its gradients.'
    )


def restore_exported(
  state: Mapping[str, np.ndarray],
  export: str,
  variables: Sequence[tf.Variable],
) -> None:
  """Restores exported variables from a learner's state, without the learner.

  Args:
    state: Result of `LearnerState.save` or `save_exported`.
    export: Name of the export, such as 'policy'.
    variables: Variables of a module like the exported one.

  Raises:
    ValueError: Naming the arrays that do not fit; nothing is changed then.
  """
  saved = {k: v for k, v in state.items() if k.startswith(f'{export}/')}
  _assign(_name_variables({export: variables}), saved)


def save_exported(
  export: str, variables: Sequence[tf.Variable], learner_steps: int
) -> dict[str, np.ndarray]:
  """Returns the arrays for `restore_exported`, without the learner."""
  arrays = _to_arrays(_name_variables({export: variables}))
  return {**arrays, 'learner_steps': np.asarray(learner_steps, np.int64)}


def select_learned(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Returns the part of a saved state from which another learner may start."""
  return {
    name: array
    for name, array in state.items()
    if '/' in name and not name.startswith(f'{_OTHER}/')
  }


def name_learned(update: interfaces.Update) -> dict[str, tf.Variable]:
  """Returns the variables from which others may start, by saved names."""
  groups = {**update.exports, **update.learned}
  if _OTHER in groups:
    raise ValueError(
      f"exports and learned must have other names than '{_OTHER}', that of all "
      f'variables that are not learned; got {list(groups)}.'
    )
  return _name_variables(groups)


def _to_arrays(variables: Mapping[str, tf.Variable]) -> dict[str, np.ndarray]:
  return {name: variable.numpy() for name, variable in variables.items()}


def _name_variables(
  groups: Mapping[str, Sequence[tf.Variable]],
) -> dict[str, tf.Variable]:
  return {
    # Names of variables alone may be ambiguous.
    f'{group}/{i:04d}/{variable.name}': variable
    for group, variables in groups.items()
    for i, variable in enumerate(variables)
  }


def _assign(
  variables: Mapping[str, tf.Variable],
  state: Mapping[str, np.ndarray],
  numbers: Collection[str] = (),
) -> None:
  """Assigns arrays, if they fit the variables, and there are also numbers."""
  shapes = {name: tuple(v.shape) for name, v in variables.items()}
  check_matches(state, {**shapes, **dict.fromkeys(numbers, ())})
  for name, variable in variables.items():
    variable.assign(state[name])


def check_matches(
  state: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]
) -> None:
  """Raises a ValueError for missing, unexpected and misshaped arrays."""
  found = {name: np.shape(value) for name, value in state.items()}
  if expected == found:
    return
  differences = [
    f'{name}: expected {expected.get(name, "nothing")}, found '
    f'{found.get(name, "nothing")}'
    for name in sorted(expected.keys() | found.keys())
    if expected.get(name) != found.get(name)
  ]
  raise ValueError(
    f'The saved arrays do not fit the variables: {"; ".join(differences)}'
  )
