"""Interface of data sets of recorded episodes, and their validation."""

import abc
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.config.settings import SettingError
from repertory.components.runtime import mask_layouts

_FIRST, _MID, _LAST = (int(one) for one in dm_env.StepType)

# Kinds of dtypes whose values can be converted to one another.
_KINDS = {'f': 'floats', 'i': 'integers', 'u': 'integers', 'b': 'booleans'}

# Relative tolerance of float actions out of bounds, for rounding.
_ROUNDING = 1e-5


class DataError(SettingError):
  """A data set cannot be read, or does not fit the environment."""

  def __init__(self, path: str, problem: str):
    super().__init__('data', f'cannot be learned from: {path} {problem}')


class DataSetSteps(NamedTuple):
  """Time steps of consecutive episodes.

  An episode of T steps has T + 1 time steps, from FIRST to LAST. An episode
  without LAST was truncated there.

  Attributes:
    step_type: int32 `[N]`, of `dm_env.StepType`.
    reward: Reward of the step that led to this time step, `[N]`; undefined at
      FIRST.
    discount: Discount of the environment, `[N]`: 0 where the episode
      terminated; undefined at FIRST.
    observation: Nest of arrays `[N, ...]`.
    action: Action at this time step, `[N, ...]`; undefined at LAST.
  """

  step_type: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  observation: types.Nest
  action: types.Nest

  @property
  def starts(self) -> np.ndarray:
    """Start indices of episodes, or of parts of them, `[E]`."""
    return find_starts(self.step_type)


def find_starts(step_type: np.ndarray) -> np.ndarray:
  """Returns where episodes start: at FIRST, after LAST, and at index 0."""
  starts = step_type == _FIRST
  starts[1:] |= step_type[:-1] == _LAST
  starts[:1] = True
  return starts.nonzero()[0]


def are_actions(step_type: np.ndarray) -> np.ndarray:
  """Returns whether an action was taken at each time step, `[N]`.

  The last time step of an episode has no action, even after truncation.
  """
  starts = find_starts(step_type)
  taken = np.ones([len(step_type)], bool)
  taken[starts[1:] - 1] = taken[-1:] = False
  return taken


def episode_lengths(step_type: np.ndarray) -> np.ndarray:
  """Returns the steps of each episode, `[E]`; 0 for a single time step."""
  starts = find_starts(step_type)
  return np.diff(starts, append=len(step_type)) - 1


def discounted_returns(steps: DataSetSteps, discount: float) -> np.ndarray:
  """Computes G_t = r_{t+1} + γ d_{t+1} G_{t+1} at all time steps.

  Args:
    steps: Time steps of whole episodes, `[N]`, or of parts of them.
    discount: γ.

  Returns:
    Return of the action at each time step, float64 `[N]`; 0 at the last one of
    an episode, also after truncation.
  """
  taken = are_actions(steps.step_type).nonzero()[0]
  rewards, discounts = steps.reward.tolist(), steps.discount.tolist()
  found = [0.0] * len(steps.step_type)
  for t in reversed(taken.tolist()):
    found[t] = rewards[t + 1] + discount * discounts[t + 1] * found[t + 1]
  return np.array(found)


class DataSet(abc.ABC):
  """Recorded episodes, which can be read repeatedly.

  Attributes:
    path: Path of the data set.
    lengths: Steps of each episode, `[E]`.
  """

  path: str
  lengths: np.ndarray

  @abc.abstractmethod
  def check(self, spec: specs.EnvironmentSpec) -> None:
    """Compares the data with an environment, as far as that is quick.

    `spec` is in single precision. Raises a DataError that names the difference,
    or the unreadable file.
    """

  @abc.abstractmethod
  def read(self, spec: specs.EnvironmentSpec) -> Iterator[DataSetSteps]:
    """Yields all time steps, with the shapes and dtypes of the spec.

    Raises a DataError that names what cannot be read or violates the spec.
    """


def check_columns(
  path: str,
  found: Mapping[str, tuple[tuple, np.dtype]],
  expected: Mapping[str, specs.Array],
  origin: str = '',
) -> None:
  """Raises a DataError unless a data set has the columns of an environment.

  `found` are shape and dtype of a time step by column, from an `origin`.
  """
  if found.keys() != expected.keys():
    raise DataError(
      path,
      'must have the columns of the environment, '
      f'{", ".join(sorted(expected))}; got {", ".join(sorted(found))}{origin}.',
    )
  for name, one in expected.items():
    _check_kind(path, name, *found[name], one)


def _check_kind(
  path: str, what: str, shape: tuple, dtype: np.dtype, spec: specs.Array
) -> None:
  """Raises a DataError if a column cannot be converted to a spec.

  Floats may have another precision, and integers another size. `shape` is that
  of one time step.
  """
  kinds = [_KINDS.get(np.dtype(one).kind) for one in (dtype, spec.dtype)]
  if tuple(shape) != tuple(spec.shape) or None in kinds or len(set(kinds)) > 1:
    raise DataError(
      path,
      f"must have '{what}' like the environment, {np.dtype(spec.dtype)} of "
      f'shape {tuple(spec.shape)}; got {dtype} of shape {tuple(shape)}.',
    )


def convert(
  path: str,
  spec: specs.EnvironmentSpec,
  step_type: np.ndarray,
  columns: Mapping[str, np.ndarray],
) -> DataSetSteps:
  """Converts columns of time steps, `[N, ...]`, and checks all values.

  The columns, named as in errors, are reward, discount and the leaves of
  observations and actions, in this order. Numbers must be finite and fit into
  the spec's dtype. Integers and actions must be in its bounds.
  """
  expected = (spec.rewards, spec.discounts, spec.observations, spec.actions)
  leaves = tree.flatten(expected)
  first_action = len(leaves) - len(tree.flatten(spec.actions))
  first, taken = step_type == _FIRST, are_actions(step_type)
  found = []
  for i, (name, one) in enumerate(zip(columns, leaves, strict=True)):
    values = columns[name]
    if i < 2 and values.dtype.kind == 'f':
      # They are undefined at FIRST, so they do not invalidate a data set.
      rows = first.reshape(-1, *[1] * (values.ndim - 1))
      is_finite = abs(values) <= np.finfo(np.float32).max
      values = np.where(rows & ~is_finite, values.dtype.type(0), values)
    values = _cast(path, name, values, one)
    if i == 1:
      is_bad = ((values < 0) | (values > 1)) & ~first
      _refuse(path, name, 'are out of [0, 1]', values, is_bad)
    elif i >= first_action:
      _check_bounds(path, name, values, one, taken)
    elif i > 1 and values.dtype.kind in 'iu':
      # Floats may be out of bounds, as in many environments.
      _check_bounds(path, name, values, one, True)
    found.append(values)
  steps = DataSetSteps(step_type, *tree.unflatten_as(expected, found))
  _check_masks(path, spec, steps, taken)
  return steps


def _check_masks(
  path: str, spec: specs.EnvironmentSpec, steps: DataSetSteps, taken: np.ndarray
) -> None:
  """Raises a DataError for an action that its mask forbids."""
  name, observations = mask_layouts.NAME, spec.observations
  if not isinstance(observations, Mapping) or name not in observations:
    return
  parts = spec.actions, steps.action, steps.observation[name]
  for leaf, actions, masks in zip(*map(tree.flatten, parts)):
    leaf_masks = mask_layouts.LeafMasks(leaf, masks.shape[1:])
    is_masked = ~leaf_masks.is_allowed(masks[taken], actions[taken])
    if is_masked.any():
      found = actions[taken][is_masked.argmax()]
      raise DataError(path, f"has an action that '{name}' forbids: {found}.")


def _cast(
  path: str, what: str, values: np.ndarray, spec: specs.Array
) -> np.ndarray:
  """Returns a column `[N, ...]` with the dtype of the spec, values checked."""
  _check_kind(path, what, values.shape[1:], values.dtype, spec)
  dtype = np.dtype(spec.dtype)
  with np.errstate(over='ignore'):
    found = values.astype(dtype, copy=False)
  if values.dtype.kind == 'f':
    _refuse(path, what, 'are not finite', values, ~np.isfinite(values))
    problem = f'are too large for {dtype}'
    _refuse(path, what, problem, values, ~np.isfinite(found))
  elif found.dtype != values.dtype:
    problem = f'are out of the range of {dtype}'
    _refuse(path, what, problem, values, found != values)
  return found


def _refuse(
  path: str, what: str, problem: str, values: np.ndarray, is_bad: np.ndarray
) -> None:
  """Raises a DataError with the first bad number, if there is any."""
  if is_bad.any():
    raise DataError(
      path,
      f"has '{what}' with numbers that {problem}; got {values[is_bad][0]}.",
    )


def check_step_type(path: str, values: np.ndarray) -> np.ndarray:
  """Returns step types `[N]` as int32, or raises a DataError."""
  if values.ndim != 1 or values.dtype.kind not in 'iu':
    raise DataError(
      path,
      f"must have 'step_type' of integers, one per time step; got "
      f'{values.dtype} of shape {values.shape}.',
    )
  problem = f'are none of {_FIRST}, {_MID} and {_LAST} (FIRST, MID, LAST)'
  is_bad = (values < _FIRST) | (values > _LAST)
  _refuse(path, 'step_type', problem, values, is_bad)
  return values.astype(np.int32, copy=False)


def _check_bounds(
  path: str, what: str, values: np.ndarray, spec: specs.Array, matters: Any
) -> None:
  """Raises a DataError for rows that matter out of bounds, if there are any."""
  if not isinstance(spec, specs.BoundedArray):
    return
  low, high = np.asarray(spec.minimum), np.asarray(spec.maximum)
  slack: Any = 0
  if values.dtype.kind == 'f':
    slack = _ROUNDING * np.maximum(np.maximum(abs(low), abs(high)), 1)
  elif values.dtype.kind in 'iu':
    limits = np.iinfo(values.dtype)
    if np.all((low <= limits.min) & (high >= limits.max)):  # As of images.
      return
  is_out = (values < low - slack) | (values > high + slack)
  is_out = is_out.reshape(len(values), -1).any(axis=1) & matters
  if is_out.any():
    found = values[is_out.argmax()]
    raise DataError(
      path,
      f"has '{what}' out of the bounds of the environment, [{low}, {high}]; "
      f'got {found}.',
    )
