"""Tests of `components/specs.py`."""

import json

import numpy as np
import pytest
import tree

from repertory.components import specs

_IMAGE = specs.BoundedArray((2, 2, 1), np.uint8, 0, 255, 'image')


@pytest.mark.parametrize(
  'nest',
  [
    specs.Array((3,), np.float32),
    specs.DiscreteArray(3, np.int32, 'action'),
    specs.BoundedArray((2,), np.float32, [-np.inf, 0.1], [np.inf, 1e30]),
    {'b': [_IMAGE, (_IMAGE,)], 'a': {'dict': _IMAGE, 'shape': []}},
  ],
)
def test_nests_are_what_they_were(nest):
  found = specs.from_json(json.loads(json.dumps(specs.to_json(nest))))
  tree.assert_same_structure(found, nest)
  for one, expected in zip(tree.flatten(found), tree.flatten(nest)):
    assert type(one) is type(expected)
    assert (one, one.name) == (expected, expected.name)
  if isinstance(nest, dict):
    assert list(found) == list(nest)


@pytest.mark.parametrize('nest', [{1: _IMAGE}, {'a': None}])
def test_other_nests_are_refused(nest):
  with pytest.raises(TypeError, match='JSON has no '):
    specs.to_json(nest)
