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
    self._build = self._learn(nested_spec, name)
    # A visitor appends the leaves of a nest to a list.
    self._visit = _make_visitor(nested_spec, name)

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

  def _learn(self, spec: Nest, path: str) -> Callable[[Sequence[Any]], Nest]:
    if isinstance(spec, abc.Mapping):
      keys = list(spec)
      parts = [self._learn(spec[key], f'{path}[{key!r}]') for key in keys]
      make = type(spec) if isinstance(spec, dict) else dict
      return lambda leaves: make(zip(keys, [part(leaves) for part in parts]))
    if isinstance(spec, (list, tuple)):
      parts = [self._learn(s, f'{path}[{i}]') for i, s in enumerate(spec)]
      make = getattr(spec, '_make', type(spec))
      return lambda leaves: make([part(leaves) for part in parts])
    if not isinstance(spec, specs.Array):
      raise ValueError(
        f'{path}: expected a `dm_env.specs.Array`, got {spec!r}.'
        ' Describe every array by its spec, in mappings, lists or tuples.'
      )
    index = len(self.specs)
    self.specs.append(spec)
    self.paths.append(path)
    return lambda leaves: leaves[index]


def _make_visitor(spec: Nest, path: str) -> Callable[[Nest, list[Any]], None]:
  if isinstance(spec, abc.Mapping):
    return _make_mapping_visitor(spec, path)
  if isinstance(spec, (list, tuple)):
    return _make_sequence_visitor(spec, path)
  return lambda nest, leaves: leaves.append(nest)


def _make_mapping_visitor(
  spec: abc.Mapping, path: str
) -> Callable[[Nest, list[Any]], None]:
  keys = spec.keys()
  visitors = [(k, _make_visitor(s, f'{path}[{k!r}]')) for k, s in spec.items()]

  def visit(nest: Nest, leaves: list[Any]) -> None:
    if not isinstance(nest, (dict, abc.Mapping)):
      found = type(nest).__name__
    elif nest.keys() != keys:
      found = f'the keys {list(nest)}'
    else:
      for key, visitor in visitors:
        visitor(nest[key], leaves)
      return
    raise ValueError(
      f'{path}: expected a mapping with the keys {list(keys)}, found {found}'
    )

  return visit


def _make_sequence_visitor(
  spec: Sequence[Any], path: str
) -> Callable[[Nest, list[Any]], None]:
  kind, length = type(spec), len(spec)
  visitors = [_make_visitor(s, f'{path}[{i}]') for i, s in enumerate(spec)]

  def visit(nest: Nest, leaves: list[Any]) -> None:
    if not isinstance(nest, kind):
      found = type(nest).__name__
    elif len(nest) != length:
      found = f'{len(nest)} parts'
    else:
      for visitor, part in zip(visitors, nest):
        visitor(part, leaves)
      return
    raise ValueError(
      f'{path}: expected a {kind.__name__} of {length} parts, found {found}'
    )

  return visit
