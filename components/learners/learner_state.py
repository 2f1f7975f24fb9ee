"""What a learner has learned, and what becomes of updates that diverge."""

import abc
import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import core, loggers, programs, types
from repertory.components.learners import divergence as divergence_lib

# The priority of an item before any was computed.
_FIRST_PRIORITY = 1.0

# The group of all variables that are neither exported nor learned.
_OTHER = 'other'


class LearnerState(core.Learner):
  """Counts updates, gives out variables, and saves and restores them.

  How updates are made is a subclass's business. The variables, by name: those
  the update exports, and two numbers. 'learner_steps' is the version of all
  others; 'max_priority' is the largest priority so far, which new items get, so
  that each is seen soon (https://arxiv.org/abs/1511.05952, algorithm 1).
  """

  def __init__(
    self,
    update: programs.Update,
    logger: loggers.Logger | None = None,
    divergence: divergence_lib.Divergence | None = None,
  ):
    """Begins with no update.

    Args:
      update: Owns all that is learned.
      logger: Takes the metrics of every step; for sequences also 'policy_lag',
        how many learner steps older the weights were that acted, on average;
        for finished targets 'target_age', the same of those that they were
        computed with; and where updates may be skipped 'skipped_updates', how
        many have been.
      divergence: What to do about an update that is not finite; by default
        the learner stops and saves nothing.
    """
    self._module = update
    self._logger = logger
    self._divergence = divergence or divergence_lib.Divergence()
    self._num_skipped = 0
    self._num_skipped_in_a_row = 0
    self._steps = 0
    self._max_priority = _FIRST_PRIORITY
    # Who asks for variables gets those of one step, not of two.
    self._lock = threading.Lock()

  @property
  def steps(self) -> int:
    """Updates so far."""
    return self._steps

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    return self._max_priority

  @property
  @abc.abstractmethod
  def open_slices(self) -> list[str]:
    """What keeps it from repeating to the bit where XLA compiled it.

    See `xla_checks.find_open_slices`; nothing without XLA.
    """

  def get_variables(self, names: Sequence[str]) -> list[types.Nest]:
    """Returns one nest of arrays per name, all of the same learner step.

    Raises:
      KeyError: If a name is unknown.
    """
    with self._lock:
      return [self._get(name) for name in names]

  def save(self) -> Mapping[str, np.ndarray]:
    """Returns all that was learned, as arrays by name.

    Raises:
      FloatingPointError: If a variable is not finite.
    """
    with self._lock:
      state = {k: v.numpy() for k, v in self._named_variables().items()}
      state['learner_steps'] = np.asarray(self._steps, np.int64)
      state['max_priority'] = np.asarray(self._max_priority, np.float64)
    _check_finite(state)
    return state

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    """Goes on from what `save` returned.

    Raises:
      ValueError: Naming what is missing, unexpected or of another shape; then
        nothing was changed.
    """
    variables = self._named_variables()
    shapes = _shapes_of(variables)
    check_matches(state, {**shapes, 'learner_steps': (), 'max_priority': ()})
    with self._lock:
      for name, variable in variables.items():
        variable.assign(state[name])
      self._steps = int(state['learner_steps'])
      self._max_priority = float(state['max_priority'])

  def get_learned(self) -> dict[str, np.ndarray]:
    """Returns what another learner may begin with, as arrays by name."""
    with self._lock:
      return {k: v.numpy() for k, v in self._learned.items()}

  def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
    """Takes what another learner had learned, and nothing of its run.

    Args:
      state: Arrays by name, see `select_learned`.

    Raises:
      ValueError: Naming what does not fit; then nothing was changed.
    """
    named = self._learned
    check_matches(state, _shapes_of(named))
    with self._lock:
      for name, variable in named.items():
        variable.assign(state[name])

  @functools.cached_property
  def _learned(self) -> dict[str, tf.Variable]:
    """What others may begin with; to look for it takes a millisecond."""
    return name_learned(self._module)

  def _get(self, name: str) -> types.Nest:
    if name == 'learner_steps':
      return np.asarray(self._steps, np.int64)
    if name == 'max_priority':
      return np.asarray(self._max_priority, np.float64)
    exports = self._module.exports
    if name not in exports:
      known = sorted([*exports, 'learner_steps', 'max_priority'])
      raise KeyError(f"Unknown variables '{name}'; there are {known}.")
    return tree.map_structure(lambda v: v.numpy(), list(exports[name]))

  def _named_variables(self) -> dict[str, tf.Variable]:
    """Names what is exported or learned by that, all others by their order."""
    named = name_learned(self._module)
    known = {v.ref() for v in named.values()}
    others = [v for v in self._module.variables if v.ref() not in known]
    return {**named, **_name_variables({_OTHER: others})}

  def _judge(
    self,
    step: int,
    metrics: Mapping[str, Any],
    is_finite: bool,
    sample: Callable[[], types.Sample],
  ) -> None:
    """Takes note of an update that was undone, or raises what ends the run.

    Args:
      step: Which it was, from 1.
      metrics: What it told.
      is_finite: Whether metrics, priorities and running statistics are finite.
      sample: Gives its batch.
    """
    if is_finite:
      self._num_skipped_in_a_row = 0
      return
    settings = self._divergence
    # Else every batch to come would be skipped.
    _check_finite({k: v.numpy() for k, v in self._named_variables().items()})
    self._num_skipped += 1
    self._num_skipped_in_a_row += 1
    skips = self._num_skipped_in_a_row
    if settings.action == 'skip' and skips <= settings.max_skips:
      return
    when = f'learner step {step}'
    if settings.action == 'skip':
      when += f', as in all of the last {skips}'
    arrays = divergence_lib.sample_arrays(sample())
    bad = divergence_lib.names_of_nonfinite(arrays)
    raise FloatingPointError(
      f'Learning diverged in {when}: metrics, priorities, running statistics '
      f'and dual variables must be finite, got the metrics {dict(metrics)}. '
      'The step was undone. Its batch '
      f'{self._save_batch(step, arrays)}; not finite in it: '
      f'{", ".join(bad) or "nothing"}. Try a smaller learning rate, clip '
      'gradients, look for extreme rewards, or skip such steps '
      '(on_divergence: skip).'
    )

  def _log(self, metrics: dict[str, Any]) -> None:
    """Writes a row for an update."""
    if self._divergence.action == 'skip':
      metrics['skipped_updates'] = self._num_skipped
    if self._logger is not None:
      self._logger.write(metrics)

  def _log_rows(self, columns: dict[str, np.ndarray]) -> None:
    """Writes a row for each of several updates, none of which was undone.

    Args:
      columns: What they told, `[K]` each.
    """
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
    """Saves a batch, if wished; says where it is."""
    directory = self._divergence.directory
    if directory is None:
      return 'was not saved'
    path = os.path.join(directory, f'step_{step}.npz')
    try:
      divergence_lib.save_arrays(path, arrays)
    except OSError as error:  # It must not hide why the learner stops.
      return f'could not be saved ({error})'
    return f'is in {path}'


def _check_finite(state: Mapping[str, np.ndarray]) -> None:
  if names := divergence_lib.names_of_nonfinite(state):
    raise FloatingPointError(
      'Learning diverged: every variable of the learner must be finite, but '
      f'these are not: {", ".join(names)}. An update made them so although its '
      'metrics were finite: let it report the norms of its gradients.'
    )


def restore_exported(
  state: Mapping[str, np.ndarray],
  export: str,
  variables: Sequence[tf.Variable],
) -> None:
  """Gives variables the values that a learner saved, without the learner.

  Args:
    state: What `LearnerState.save` or `save_exported` returned.
    export: Such as 'policy'.
    variables: Those of a module like the one that was exported.

  Raises:
    ValueError: Naming what does not fit; then nothing was changed.
  """
  named = _name_variables({export: variables})
  saved = {k: v for k, v in state.items() if k.startswith(f'{export}/')}
  check_matches(saved, _shapes_of(named))
  for name, variable in named.items():
    variable.assign(saved[name])


def save_exported(
  export: str, variables: Sequence[tf.Variable], learner_steps: int
) -> dict[str, np.ndarray]:
  """Returns what `restore_exported` needs, without the learner.

  Args:
    export: Such as 'policy'.
    variables: Those of a module like the one that is exported.
    learner_steps: The learner's count, when it had them.
  """
  named = _name_variables({export: variables})
  arrays = {name: variable.numpy() for name, variable in named.items()}
  return {**arrays, 'learner_steps': np.asarray(learner_steps, np.int64)}


def select_learned(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Returns what another learner may begin with of what one saved.

  Args:
    state: What `LearnerState.save` returned.
  """
  return {
    name: array
    for name, array in state.items()
    if '/' in name and not name.startswith(f'{_OTHER}/')
  }


def name_learned(update: programs.Update) -> dict[str, tf.Variable]:
  """Returns what others may begin with, by the names of the arrays saved.

  Raises:
    ValueError: If the update calls some of it like what is not learned.
  """
  groups = {**update.exports, **update.learned}
  if _OTHER in groups:
    raise ValueError(
      f"exports and learned must have other names than '{_OTHER}', which what "
      f'is not learned is saved under; got {list(groups)}.'
    )
  return _name_variables(groups)


def _name_variables(
  groups: Mapping[str, Sequence[tf.Variable]],
) -> dict[str, tf.Variable]:
  return {
    # A variable's name alone may be another's too.
    f'{group}/{i:04d}/{variable.name}': variable
    for group, variables in groups.items()
    for i, variable in enumerate(variables)
  }


def _shapes_of(
  named: Mapping[str, tf.Variable],
) -> dict[str, tuple[int, ...]]:
  return {name: tuple(v.shape) for name, v in named.items()}


def check_matches(
  state: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]
) -> None:
  """Compares arrays that were saved with the shapes that are to be filled.

  Raises:
    ValueError: Naming what is missing, unexpected or of another shape.
  """
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
    "The learner's state does not fit its network and optimizer: "
    + '; '.join(differences)
  )
