"""Tests of what differs between the two sets of versions."""

import collections

import tensorflow as tf
import tree

from repertory.components import stack

_Pair = collections.namedtuple('_Pair', 'first second')


def test_functions_return_what_was_made_like_attributes_of_modules():
  ones, twos = tf.ones([2]), tf.fill([3], 2.0)
  parts = {
    'in a dictionary': {'a': ones, 'b': {'c': twos}},
    'in tuples': (ones, _Pair(twos, {'a': ones}), [{'b': twos}]),
    'ordered': collections.OrderedDict([('z', ones), ('a', {'b': twos})]),
  }
  module = tf.Module()
  module.parts = parts

  def double():
    made = tree.map_structure(lambda leaf: 2 * leaf, module.parts)
    assert type(made) is not dict  # TensorFlow's, of which this is about.
    return stack.unwrap(made)

  doubled = tf.function(double)()
  expected = tree.map_structure(lambda leaf: 2 * leaf, parts)
  tree.assert_same_structure(doubled, expected, check_types=True)
  for leaf, value in zip(tree.flatten(doubled), tree.flatten(expected)):
    assert leaf.numpy().tolist() == value.numpy().tolist()


def test_variables_are_kept():
  variable = tf.Variable(1.0)
  module = tf.Module()
  module.parts = {'a': (variable,)}
  assert stack.unwrap(module.parts)['a'][0] is variable
  assert type(stack.unwrap(module.parts)) is dict
