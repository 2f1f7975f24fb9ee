"""Tests of fast unflattening, against dm-tree."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import specs
from repertory.components.runtime import nests
from repertory.environments.games import catch


class _Pair(NamedTuple):
  one: object
  other: object


_STRUCTURES = {
  'leaf': 0,
  'nothing': (),
  'no_keys': {},
  'tuple': (0, (0, 0), ()),
  'list': [0, [0], 0],
  'dict': {'b': 0, 'a': {'d': 0, 'c': (0, 0)}},
  'numbers_as_keys': {2: 0, 10: 0, 1: 0},
  'named_tuple': _Pair(0, _Pair((), {'x': 0})),
  'inside': {'z': collections.OrderedDict(b=0, a=[0]), 'a': 0},
}


@pytest.mark.parametrize('structure', _STRUCTURES.values(), ids=_STRUCTURES)
def test_is_what_dm_tree_makes(structure):
  leaves = [object() for _ in tree.flatten(structure)]
  expected = tree.unflatten_as(structure, leaves)
  found = nests.Unflattener(structure)(leaves)
  tree.assert_same_structure(found, expected, check_types=True)
  assert found == expected
  assert repr(found) == repr(expected)  # Order of dictionaries, too.
  # By position, whatever equality says.
  assert [id(leaf) for leaf in tree.flatten(found)] == [id(x) for x in leaves]


@pytest.mark.parametrize('count', [2, 4])
def test_leaves_must_be_as_many(count):
  unflatten = nests.Unflattener({'a': 0, 'b': (0, 0)})
  with pytest.raises(ValueError, match=f'leaves must be 3, .* got {count}'):
    unflatten([0] * count)


def _make_deep():
  return {'a': [0, {'b': 1, 'c': (2, [3])}], 'z': (_Pair(4, [5]), {'q': [6]})}


def test_wrappers_of_tensorflow_are_taken_off():
  module, kept = tf.Module(), _make_deep()
  module.kept = kept
  # The originals are inside; `plain` removes the wrappers.
  assert type(kept['a']) is not list
  found = nests.plain(module.kept)
  assert repr(found) == repr(_make_deep())
  assert all(
    type(one) in (dict, list, tuple, _Pair) for one in _parts_of(found)
  )
  leaves = list(range(7))
  assert repr(nests.Unflattener(module.kept)(leaves)) == repr(_make_deep())


def test_specs_are_no_part_of_the_environment():
  kept = {'a': [specs.Array((), np.float32)]}

  class Keeping(catch.Catch):
    def observation_spec(self):
      return kept

  spec = specs.make_environment_spec(Keeping())
  module = tf.Module()
  module.spec = spec
  assert all(type(one) in (dict, list) for one in _parts_of(kept))


def _parts_of(nest):
  """Returns all containers of a nest, including itself."""
  if not tree.is_nested(nest):
    return []
  parts = nest.values() if isinstance(nest, dict) else nest
  return [nest, *(one for part in parts for one in _parts_of(part))]


class TestPaths:
  def test_they_are_keys_and_numbers(self):
    nest = {'b': (0, {'x~y': 0}), 'a/c': 0}
    assert nests.paths_of(nest, 'root') == [
      'root/a/c', 'root/b/0', 'root/b/1/x~y',
    ]  # fmt: skip
    assert nests.paths_of(0, 'root') == ['root']

  def test_they_differ(self):
    nest = {'a/b': 0, 'a': {'b': 0, 'x~1y': 0}}
    assert nests.paths_of(nest) == ['a/b', 'a/x~01y', 'a~1b']
