"""Structure of a nest, precomputed so that flattening is cheap in each step.

The general functions of `tree` inspect the structure at every call. Here it is
fixed, and the keys of mappings are compared too.
"""

from collections import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dm_env import specs

# A (possibly nested) structure of specs, arrays or numbers: lists, tuples,
# named tuples, mappings, or a single leaf.
Nest: TypeAlias = Any

_Build: TypeAlias = Callable[[Sequence[Any]], Nest]
_Visit: TypeAlias = Callable[[Nest, list[Any]], None]


class NestLayout:
  """Flattens and unflattens nests of one structure.

  Attributes:
    specs: Leaves of the nest of specs, in flattening order.
    paths: Path of each leaf, such as `observation['camera'][0]`.
    is_leaf: Whether the nest is a single leaf.
  """

  def __init__(self, nested_spec: Nest, name: str):
    """Records the structure.

    Args:
      nested_spec: Nest of mappings, lists, tuples and named tuples with
        `dm_env.specs.Array` as its leaves.
      name: Name of the nest in messages.

    Raises:
      ValueError: If a leaf is not a spec.
    """
    self.specs: list[specs.Array] = []
    self.paths: list[str] = []
    self.is_leaf = isinstance(nested_spec, specs.Array)
    # The visitor appends the leaves of a nest to a list.
    self._build, self._visit = self._learn(nested_spec, name)

  def describe(self) -> str:
    """Returns the shape and the dtype of each leaf, without its bounds."""
    leaves = [
      f'{path} of shape {spec.shape} and dtype {spec.dtype}'
      for path, spec in zip(self.paths, self.specs)
    ]
    return ', '.join(leaves) or 'no leaf'

  def flatten(self, nest: Nest) -> list[Any]:
    """Returns the leaves of a nest of this structure.

    Raises:
      ValueError: If the structure differs; the message has the path.
    """
    leaves: list[Any] = []
    self._visit(nest, leaves)
    return leaves

  def unflatten(self, leaves: Sequence[Any]) -> Nest:
    """Returns the nest of these leaves."""
    return self._build(leaves)

  def map(self, functions: Sequence[Callable[[Any], Any]], nest: Nest) -> Nest:
    """Applies the i-th function to the i-th leaf, preserving the structure."""
    leaves = self.flatten(nest)
    return self._build([f(leaf) for f, leaf in zip(functions, leaves)])

  def _learn(self, spec: Nest, path: str) -> tuple[_Build, _Visit]:
    if isinstance(spec, specs.Array):
      index = len(self.specs)
      self.specs.append(spec)
      self.paths.append(path)
      return lambda leaves: leaves[index], lambda nest, out: out.append(nest)
    if isinstance(spec, abc.Mapping):
      keys, children = list(spec), list(spec.values())
      check = _key_checker(spec, path)
      kind: Any = type(spec) if isinstance(spec, dict) else dict
      make = lambda parts: kind(zip(keys, parts))  # noqa: E731
    elif isinstance(spec, (list, tuple)):
      keys, children = range(len(spec)), spec
      check = _length_checker(spec, path)
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
      check(nest)
      for key, _, visit_part in parts:
        visit_part(nest[key], leaves)

    return lambda leaves: make([build(leaves) for _, build, _ in parts]), visit


def _key_checker(spec: abc.Mapping, path: str) -> Callable[[Any], None]:
  keys = spec.keys()

  def check(nest: Any) -> None:
    is_mapping = isinstance(nest, (dict, abc.Mapping))
    if is_mapping and nest.keys() == keys:
      return
    found = f'the keys {list(nest)}' if is_mapping else type(nest).__name__
    raise ValueError(
      f'{path}: expected a mapping with the keys {list(keys)}, found {found}'
    )

  return check


def _length_checker(spec: Sequence[Any], path: str) -> Callable[[Any], None]:
  kind, length = type(spec), len(spec)

  def check(nest: Any) -> None:
    is_kind = isinstance(nest, kind)
    if is_kind and len(nest) == length:
      return
    found = f'{len(nest)} parts' if is_kind else type(nest).__name__
    raise ValueError(
      f'{path}: expected a {kind.__name__} of {length} parts, found {found}'
    )

  return check
