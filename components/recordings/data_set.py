"""What a data set is: episodes, whoever wrote them and in whatever files."""

import abc
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import dm_env
import numpy as np

from repertory.components import specs, types
from repertory.components.settings import SettingError

_FIRST, _MID, _LAST = (int(one) for one in dm_env.StepType)

# Kinds of dtypes whose values may be told in one another.
_KINDS = {'f': 'floats', 'i': 'integers', 'u': 'integers', 'b': 'booleans'}

# Float actions may be out of their bounds by so much of them: by rounding.
_ROUNDING = 1e-5


class DataError(SettingError):
  """A data set cannot be read, or is of another environment.

  Attributes:
    path: Which.
  """

  def __init__(self, path: str, problem: str):
    super().__init__('data', f'cannot be learned from: {path} {problem}')
    self.path = path


class Steps(NamedTuple):
  """Moments of episodes, one after the other, episode after episode.

  An episode of T steps has T + 1 moments, from FIRST to LAST. If it has no
  LAST it was broken off there, and nothing is known of what came then.

  Attributes:
    step_type: int32 `[N]`, of `dm_env.StepType`.
    reward: What led to the moment was rewarded with, `[N]`; at FIRST it means
      nothing.
    discount: The environment's, `[N]`: 0 where the episode terminated; at
      FIRST likewise.
    observation: Nest of arrays `[N, ...]`.
    action: What was done then, `[N, ...]`. At LAST it means nothing.
  """

  step_type: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  observation: types.Nest
  action: types.Nest

  @property
  def starts(self) -> np.ndarray:
    """Where episodes, or what is left of their beginnings, start, `[E]`."""
    return find_starts(self.step_type)


def find_starts(step_type: np.ndarray) -> np.ndarray:
  """Returns where episodes start: at FIRST, after LAST, and at the beginning.

  Args:
    step_type: `[N]`.
  """
  starts = step_type == _FIRST
  starts[1:] |= step_type[:-1] == _LAST
  starts[:1] = True
  return starts.nonzero()[0]


def are_actions(step_type: np.ndarray) -> np.ndarray:
  """Returns whether an action was taken at each moment, `[N]`.

  None was at the last moment of an episode, even if that was broken off.
  """
  starts = find_starts(step_type)
  taken = np.ones([len(step_type)], bool)
  taken[starts[1:] - 1] = taken[-1:] = False
  return taken


def episode_lengths(step_type: np.ndarray) -> np.ndarray:
  """Returns how many steps each episode has, `[E]`; one moment alone is 0."""
  starts = find_starts(step_type)
  return np.diff(starts, append=len(step_type)) - 1


class DataSet(abc.ABC):
  """Episodes that were recorded once, and are read as often as one likes.

  Attributes:
    path: Where it is.
    lengths: Steps of each episode, `[E]`.
  """

  path: str
  lengths: np.ndarray

  @abc.abstractmethod
  def check(self, spec: specs.EnvironmentSpec) -> None:
    """Compares it with an environment, as far as that shows at once.

    Args:
      spec: What is to be learned for; of single precision.

    Raises:
      DataError: Naming what differs, or what cannot be read.
    """

  @abc.abstractmethod
  def read(self, spec: specs.EnvironmentSpec) -> Iterator[Steps]:
    """Yields all moments, of the shapes and dtypes of the spec.

    Raises:
      DataError: Naming what cannot be read, or is not as the spec says.
    """


def check_kind(
  path: str, what: str, shape: tuple, dtype: np.dtype, spec: specs.Array
) -> None:
  """Refuses a column that cannot be told as the spec says.

  Floats may be of another precision, and integers of another size.

  Args:
    path: That of the data set.
    what: Name of the column.
    shape: That of one moment.
    dtype: As it is there.
    spec: The environment's.

  Raises:
    DataError: Naming the column.
  """
  kinds = [_KINDS.get(np.dtype(one).kind) for one in (dtype, spec.dtype)]
  if tuple(shape) != tuple(spec.shape) or None in kinds or len(set(kinds)) > 1:
    raise DataError(
      path,
      f"has another '{what}' than the environment, whose is of "
      f'{np.dtype(spec.dtype)} and shape {tuple(spec.shape)}; got {dtype} and '
      f'shape {tuple(shape)}.',
    )


def cast(
  path: str, what: str, values: np.ndarray, spec: specs.Array
) -> np.ndarray:
  """Returns a column `[N, ...]` with the dtype of the spec, values checked.

  Raises:
    DataError: If numbers are not finite, or out of the spec's dtype.
  """
  check_kind(path, what, values.shape[1:], values.dtype, spec)
  is_float = values.dtype.kind == 'f'
  if is_float and not np.isfinite(values).all():
    _refuse(path, what, 'are not finite', values, ~np.isfinite(values))
  with np.errstate(over='ignore'):
    found = values.astype(spec.dtype, copy=False)
  is_same = found.dtype == values.dtype
  if not is_same and values.dtype.kind in 'iu' and (found != values).any():
    problem = f'{np.dtype(spec.dtype)} does not have'
    _refuse(path, what, problem, values, found != values)
  if is_float and not np.isfinite(found).all():
    problem = f'are too large for {np.dtype(spec.dtype)}'
    _refuse(path, what, problem, values, ~np.isfinite(found))
  return found


def _refuse(
  path: str, what: str, problem: str, values: np.ndarray, is_bad: np.ndarray
) -> NoReturn:
  """Raises a DataError that tells the first of the bad numbers."""
  raise DataError(
    path,
    f"has '{what}' with numbers that {problem}; got {values[is_bad][0]}.",
  )


def check_step_type(path: str, values: np.ndarray) -> np.ndarray:
  """Returns step types `[N]` as int32.

  Raises:
    DataError: If they are not integers, of another rank, or not of
      `dm_env.StepType`.
  """
  if values.ndim != 1 or values.dtype.kind not in 'iu':
    raise DataError(
      path,
      f"must have 'step_type' of integers, one for each moment; got "
      f'{values.dtype} and shape {values.shape}.',
    )
  is_bad = (values < _FIRST) | (values > _LAST)
  if is_bad.any():
    problem = f'are none of {_FIRST}, {_MID} and {_LAST} (FIRST, MID, LAST)'
    _refuse(path, 'step_type', problem, values, is_bad)
  return values.astype(np.int32, copy=False)


def clear_first(values: np.ndarray, step_type: np.ndarray) -> np.ndarray:
  """Returns rewards or discounts `[N, ...]`, at FIRST 0 if not finite.

  They mean nothing there, so they are no reason to refuse a data set.
  """
  if values.dtype.kind != 'f':
    return values
  first = (step_type == _FIRST).reshape(-1, *[1] * (values.ndim - 1))
  is_finite = abs(values) <= np.finfo(np.float32).max
  return np.where(first & ~is_finite, values.dtype.type(0), values)


def check_discounts(
  path: str, discounts: np.ndarray, step_type: np.ndarray
) -> None:
  """Refuses discounts `[N]` out of [0, 1]; FIRST is ignored.

  Raises:
    DataError: With the first of them.
  """
  is_bad = ((discounts < 0) | (discounts > 1)) & (step_type != _FIRST)
  if is_bad.any():
    _refuse(path, 'discount', 'are out of [0, 1]', discounts, is_bad)


def check_bounds(
  path: str, what: str, values: np.ndarray, spec: specs.Array, matters: Any
) -> None:
  """Refuses values out of the bounds of a spec, if it has any.

  Args:
    what: Name of the column.
    values: `[N, ...]`.
    spec: Spec of one row.
    matters: Booleans `[N]` of the rows to check, or True for all.

  Raises:
    DataError: With the first of them.
  """
  if not isinstance(spec, specs.BoundedArray):
    return
  low, high = np.asarray(spec.minimum), np.asarray(spec.maximum)
  slack: Any = 0
  if np.dtype(spec.dtype).kind == 'f':
    slack = _ROUNDING * np.maximum(np.maximum(abs(low), abs(high)), 1)
  is_out = (values < low - slack) | (values > high + slack)
  is_out = is_out.reshape(len(values), -1).any(axis=1) & matters
  if is_out.any():
    found = values[is_out.argmax()]
    raise DataError(
      path,
      f"has '{what}' out of the bounds of the environment, [{low}, {high}]; "
      f'got {found}.',
    )


def check_numbers(
  path: str, what: str, values: np.ndarray, spec: specs.Array
) -> None:
  """Refuses integer observations out of the bounds of their spec.

  Floats may be out of their bounds, as those of many environments are.

  Args:
    what: Name of the column.
    values: `[N, ...]`.
    spec: Spec of one row.

  Raises:
    DataError: With the first of them.
  """
  dtype = np.dtype(spec.dtype)
  if dtype.kind not in 'iu' or not isinstance(spec, specs.BoundedArray):
    return
  limits = np.iinfo(dtype)
  has_all = (spec.minimum <= limits.min) & (spec.maximum >= limits.max)
  if not np.all(has_all):  # Images have.
    check_bounds(path, what, values, spec, matters=True)
