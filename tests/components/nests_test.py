"""Tests of nests that are put together fast, against dm-tree."""

import collections
from typing import NamedTuple

import pytest
import tree

from repertory.components import nests, types


class _Pair(NamedTuple):
  one: object
  other: object


_STRUCTURES = {
  'leaf': 0,
  'none': None,
  'text': 'a',
  'nothing': (),
  'no_keys': {},
  'tuple': (0, (0, 0), ()),
  'list': [0, [0], 0],
  'dict': {'b': 0, 'a': {'d': 0, 'c': (0, 0)}},
  'numbers_as_keys': {2: 0, 10: 0, 1: 0},
  'named_tuple': _Pair(0, _Pair((), {'x': 0})),
  'extras': types.SequenceExtras(step={'sample': 0, 'log_prob': 0}, state=()),
  'ordered': collections.OrderedDict([('b', 0), ('a', (0, 0))]),
  'inside': {'z': collections.OrderedDict(b=0, a=[0]), 'a': 0},
}


@pytest.mark.parametrize('structure', _STRUCTURES.values(), ids=_STRUCTURES)
def test_is_what_dm_tree_makes(structure):
  leaves = [object() for _ in tree.flatten(structure)]
  expected = tree.unflatten_as(structure, leaves)
  found = nests.Unflattener(structure)(leaves)
  tree.assert_same_structure(found, expected, check_types=True)
  assert found == expected
  assert repr(found) == repr(expected)  # So dictionaries have their order.
  # And by place, whatever equality says of it.
  assert [id(leaf) for leaf in tree.flatten(found)] == [id(x) for x in leaves]


@pytest.mark.parametrize('count', [0, 2, 4])
def test_leaves_must_be_as_many(count):
  unflatten = nests.Unflattener({'a': 0, 'b': (0, 0)})
  with pytest.raises(ValueError, match=f'leaves must be 3, .* got {count}'):
    unflatten([0] * count)
