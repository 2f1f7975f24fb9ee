"""Structure of a nest, precomputed so that flattening is cheap in each step."""

import operator
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
