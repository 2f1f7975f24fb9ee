"""Tests of the compatibility layer for the stacks."""

import ctypes
import importlib.util
from typing import Any

import tensorflow as tf
import tree

from repertory.components.runtime import compilation, versions

assert compilation  # Importing it installs the fix.


def test_functions_take_and_return_attributes_of_modules():
  ones, twos = tf.ones([2]), tf.fill([3], 2.0)
  parts = {'a': ones, 'b': {'c': (twos, {'d': ones})}}
  module: Any = tf.Module()
  module.parts = parts
  assert type(module.parts) is not dict  # TensorFlow's wrapper.
  assert type(parts['b']) is not dict  # So are nested ones.

  @tf.function(autograph=False)
  def double(nest):
    return tree.map_structure(lambda leaf: 2 * leaf, nest)

  for nest in (module.parts, parts, (parts['b'],)):
    doubled = double(nest)
    tree.assert_same_structure(doubled, nest)
    for found, leaf in zip(tree.flatten(doubled), tree.flatten(nest)):
      assert found.numpy().tolist() == (2 * leaf).numpy().tolist()


def test_missing_packages_are_named():
  assert versions.describe({'Python': '3.12', 'Reverb': None}) == (
    'Python 3.12, no Reverb'
  )
  assert versions.has_reverb() == (
    importlib.util.find_spec('reverb') is not None
  )
  assert versions.versions()['TensorFlow'] == tf.__version__
  assert versions.installed()['TensorFlow'] == tf.__version__


def test_symbols_of_tensorflow_are_not_global():
  assert not hasattr(ctypes.CDLL(None), 'TF_Version')
