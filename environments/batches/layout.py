"""Structure and leaves of nests: checks and casts that are cheap in a step."""

import operator
from collections import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from dm_env import specs

from repertory.components.config import settings
from repertory.environments.values import casting

# A (possibly nested) structure of specs, arrays or numbers: lists, tuples,
# named tuples, mappings, or a single leaf.
Nest: TypeAlias = Any

_Build: TypeAlias = Callable[[Sequence[Any]], Nest]
_Visit: TypeAlias = Callable[[Nest, list[Any]], None]


class EnvironmentContractError(settings.InputError):
  """Raised if an environment violates its specs or dm_env's contract."""


class NotFiniteError(FloatingPointError):
  """Raised if the action of `slot` is NaN or infinite."""

  def __init__(self, slot: int, message: str):
    super().__init__(message)
    self.slot = slot


class NestLayout:
  """Flattens and unflattens nests of one structure.

  Attributes:
    specs: Leaves of the nest of specs, in flattening order.
    paths: Path of each leaf, such as `observation['camera'][0]`.
    is_leaf: Whether the nest is a single leaf.
  """

  def __init__(self, nested_spec: Nest, name: str):
    """Records the structure of specs; messages call the nest `name`."""
    self.specs: list[specs.Array] = []
    self.paths: list[str] = []
    self.is_leaf = isinstance(nested_spec, specs.Array)
    # The visitor appends the leaves of a nest to a list.
    self._build, self._visit = self._learn(nested_spec, name)

  def flatten(self, nest: Nest) -> list[Any]:
    """Returns the leaves; a ValueError names the path that differs."""
    leaves: list[Any] = []
    self._visit(nest, leaves)
    return leaves

  def unflatten(self, leaves: Sequence[Any]) -> Nest:
    """Returns the nest of these leaves."""
    return self._build(leaves)

  def mapper(self, functions: Sequence[Callable]) -> Callable[..., Nest]:
    """Returns a function that applies the i-th one to the i-th leaf of a nest.

    Its further arguments are those of all functions.
    """
    if self.is_leaf:  # Common, and needs no flattening.
      return functions[0]

    def convert(nest: Nest, *rest: Any) -> Nest:
      leaves = zip(functions, self.flatten(nest))
      return self._build([f(leaf, *rest) for f, leaf in leaves])

    return convert

  def _learn(self, spec: Nest, path: str) -> tuple[_Build, _Visit]:
    if isinstance(spec, specs.Array):
      index = len(self.specs)
      self.specs.append(spec)
      self.paths.append(path)
      return lambda leaves: leaves[index], lambda nest, out: out.append(nest)
    kinds: Any
    if isinstance(spec, abc.Mapping):
      keys, children, size = list(spec), list(spec.values()), spec.keys()
      # A dict first: the check of the abstract class is slow.
      kinds, measure = (dict, abc.Mapping), operator.methodcaller('keys')
      kind: Any = type(spec) if isinstance(spec, dict) else dict
      make = lambda parts: kind(zip(keys, parts))  # noqa: E731
    elif isinstance(spec, (list, tuple)):
      keys, children, size = range(len(spec)), spec, len(spec)
      kinds, measure = type(spec), len
      make = getattr(spec, '_make', type(spec))
    else:
      raise ValueError(
        f'{path}: expected a `dm_env.specs.Array`, got {spec!r}.'
        ' Describe every array by its spec, in mappings, lists or tuples.'
      )
    parts = [
      (key, *self._learn(child, f'{path}[{key!r}]'))
      for key, child in zip(keys, children)
    ]

    def visit(nest: Nest, leaves: list[Any]) -> None:
      if not isinstance(nest, kinds) or measure(nest) != size:
        raise ValueError(
          f'{path}: expected {_describe(spec)}, found {_describe(nest)}'
        )
      for key, _, visit_part in parts:
        visit_part(nest[key], leaves)

    return lambda leaves: make([build(leaves) for _, build, _ in parts]), visit


def _describe(nest: Nest) -> str:
  if isinstance(nest, abc.Mapping):
    return f'a mapping with the keys {list(nest)}'
  if isinstance(nest, (list, tuple)):
    return f'a {type(nest).__name__} of {len(nest)} parts'
  return type(nest).__name__


def make_narrow(nested_spec: Nest, size: int) -> Callable[[Nest], Nest]:
  """Returns the check and cast of observations `[B, ...]` to the specs.

  It raises a ValueError for those that do not fit, or are out of bounds.
  """
  observations = NestLayout(nested_spec, 'observation')

  def make(path: str, spec: specs.Array) -> Callable[[Any], np.ndarray]:
    shape, dtype = (size, *spec.shape), spec.dtype
    check_range = make_range_check(path, spec)

    def narrow(leaf: Any) -> np.ndarray:
      is_plain = type(leaf) is np.ndarray and leaf.shape == shape
      if not is_plain or leaf.dtype != dtype:
        leaf = casting.cast(leaf, shape, dtype, path)
      if check_range is not None:
        check_range(leaf)
      return leaf

    return narrow

  pairs = zip(observations.paths, observations.specs)
  return observations.mapper([make(*pair) for pair in pairs])


def make_widen(
  nested_spec: Nest, wide_spec: Nest, size: int
) -> Callable[[Nest, np.ndarray | None], Nest]:
  """Returns the check and cast of actions `[B, ...]` to wide dtypes.

  It takes actions of `nested_spec`, and the ended slots, `[B]` or None, which
  get the valid action closest to 0. It raises a ValueError for actions that do
  not fit the spec, and a NotFiniteError for floats that are not finite.
  """
  actions = NestLayout(nested_spec, '`actions`')

  def make(path: str, spec: specs.Array, wide: specs.Array) -> Callable:
    shape, dtype = (size, *spec.shape), spec.dtype
    check_range = make_range_check(path, spec)
    idle = make_initial_action(spec).astype(wide.dtype)

    def widen(leaf: Any, ended: np.ndarray | None) -> np.ndarray:
      array = np.asarray(leaf)
      if array.dtype != dtype or array.shape != shape:
        array = casting.cast(array, shape, dtype, path)
      # A copy, because an environment may change its action in place.
      array = array.astype(wide.dtype)
      if ended is not None:
        array[ended] = idle
      if check_range is not None:
        check_range(array)
      elif dtype.kind == 'f' and not (finite := np.isfinite(array)).all():
        slot = int(np.argwhere(~finite)[0, 0])
        raise NotFiniteError(
          slot,
          f'{path}: expected finite numbers, found {array[slot].tolist()}',
        )
      return array

    return widen

  wide_leaves = NestLayout(wide_spec, '`actions`').specs
  leaves = zip(actions.paths, actions.specs, wide_leaves)
  return actions.mapper([make(*leaf) for leaf in leaves])


def make_initial_action(spec: specs.Array) -> np.ndarray:
  """Returns zeros, or the nearest values within the spec's bounds."""
  zeros = np.zeros(spec.shape, spec.dtype)
  if not isinstance(spec, specs.BoundedArray):
    return zeros
  return np.clip(zeros, spec.minimum, spec.maximum)


def make_range_check(
  path: str, spec: specs.Array, row: str = 'slot'
) -> Callable[[np.ndarray], None] | None:
  """Returns the check of an integer leaf `[B, ...]`; None if it has no bounds.

  The check raises a ValueError that names the leaf `path`, and a `row` whose
  integers are out of bounds.
  """
  if spec.dtype.kind not in 'iu' or not isinstance(spec, specs.BoundedArray):
    return None
  minimum, maximum = spec.minimum, spec.maximum
  limits = np.iinfo(spec.dtype)
  if np.all(minimum == limits.min) and np.all(maximum == limits.max):
    return None
  num_values = getattr(spec, 'num_values', 0)

  def check(array: np.ndarray) -> None:
    # Viewed as unsigned, negative numbers are large.
    if num_values:
      unsigned = array.view(f'u{array.itemsize}')  # [B]
      if np.maximum.reduce(unsigned) < num_values:
        return
    outside = (array < minimum) | (array > maximum)
    if outside.any():
      index = int(np.argwhere(outside)[0, 0])
      raise ValueError(
        f'{path}: expected integers from {minimum.tolist()} to '
        f'{maximum.tolist()}, found '
        f'{casting.shorten(array[index].tolist())} in {row} {index}'
      )

  return check
