"""Parts of an action spec: shapes, bounds and numbers of choices.

An action is one array or a nest of arrays, its *parts*. Each part holds floats
(continuous) or integers with bounds (discrete): a `DiscreteArray` for a single
choice, a `BoundedArray` of integers for several at once.
"""

from typing import NamedTuple, TypeGuard

import numpy as np
import tree

from repertory.components import specs, types

# Limit on the values of one integer, because a network has an output for each.
# A `DiscreteArray` may have more: it states their number, whereas bounds may
# just be those of the dtype.
MAX_CHOICES = 65_536


class ActionPart(NamedTuple):
  """A leaf of an action spec.

  Attributes:
    name: Its name in messages, such as `actions['arm'][0]`.
    spec: The array spec.
  """

  name: str
  spec: specs.Array


def parts_of(action_spec: types.Nest) -> list[ActionPart]:
  """Returns the parts of an action, in the order of `tree.flatten`.

  Raises:
    ValueError: If there are no parts, or one is not an array spec.
  """
  parts = []
  for path, spec in tree.flatten_with_path(action_spec):
    name = f'actions{"".join(f"[{step!r}]" for step in path)}'
    if not isinstance(spec, specs.Array):
      raise ValueError(f'{name} must be a dm_env spec, got {spec!r}.')
    parts.append(ActionPart(name, spec))
  if not parts:
    raise ValueError(
      f'The action spec must have at least one array, got {action_spec!r}.'
    )
  return parts


def is_continuous(spec: specs.Array) -> bool:
  """Returns whether a part holds floats."""
  return np.issubdtype(spec.dtype, np.floating) and 0 not in spec.shape


def are_continuous(action_spec: types.Nest) -> bool:
  """Returns whether all parts of an action hold floats.

  Raises:
    ValueError: If some parts hold floats and others integers, or a part is of
      another kind.
  """
  parts = parts_of(action_spec)
  if all(is_continuous(part.spec) for part in parts):
    return True
  if all(is_discrete(part.spec) for part in parts):
    return False
  raise ValueError(
    'actions must be arrays of floats with bounds, or else DiscreteArrays and '
    'arrays of integers with bounds, not both and none of them empty; got '
    f'{action_spec!r}.'
  )


def is_discrete(spec: specs.Array) -> TypeGuard[specs.BoundedArray]:
  """Returns whether a part holds integers with bounds."""
  return (
    isinstance(spec, specs.BoundedArray)
    and np.issubdtype(spec.dtype, np.integer)
    and 0 not in spec.shape
  )


def choices_of(spec: specs.BoundedArray) -> tuple[np.ndarray, np.ndarray]:
  """Returns the least values of a part's integers, and numbers of values.

  Both have the shape of the spec; the numbers are int64.

  Raises:
    ValueError: If an integer has more than `MAX_CHOICES` values, as when the
      bounds are those of the dtype.
  """
  minimum, maximum = (
    np.broadcast_to(bound, spec.shape) for bound in (spec.minimum, spec.maximum)
  )
  # Python integers: the differences may exceed any dtype.
  counts = maximum.astype(object) - minimum.astype(object) + 1
  if not isinstance(spec, specs.DiscreteArray) and np.max(counts) > MAX_CHOICES:
    raise ValueError(
      f'An integer of an action must have at most {MAX_CHOICES:,} values, got '
      f'{np.max(counts):,} in {spec!r}. Wrap the environment to narrow the '
      'bounds.'
    )
  return minimum, np.asarray(counts, np.int64)


def bounds(spec: specs.Array) -> tuple[np.ndarray, np.ndarray]:
  """Returns the lower and upper bounds, infinite where the spec has none."""
  minimum = np.asarray(getattr(spec, 'minimum', -np.inf), np.float64)
  maximum = np.asarray(getattr(spec, 'maximum', np.inf), np.float64)
  return (
    np.broadcast_to(minimum, spec.shape), np.broadcast_to(maximum, spec.shape),
  )  # fmt: skip


def scale_of(spec: specs.Array) -> tuple[np.ndarray, np.ndarray]:
  """Returns center and half width of bounds; 0 and 1 where one is missing."""
  minimum, maximum = bounds(spec)
  is_bounded = np.isfinite(minimum) & np.isfinite(maximum)
  with np.errstate(invalid='ignore'):
    middle = np.where(is_bounded, minimum / 2 + maximum / 2, 0)
    half_width = np.where(is_bounded, maximum / 2 - minimum / 2, 1)
  return middle, half_width
