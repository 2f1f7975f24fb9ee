"""Tests of `components/networks/torsos.py` and `initialization.py`."""

import numpy as np
import sonnet as snt
import tensorflow as tf
from absl.testing import absltest, parameterized
from acme import specs
from dm_env import specs as dm_env_specs

from repertory.components import networks

B = 4


def make_nest():
  random = np.random.default_rng(0)
  return {
    'vector': random.normal(size=[B, 3]).astype(np.float32),
    'flag': np.array([True, False, False, True]),
    'inner': (
      random.integers(0, 255, size=[B, 2, 2]).astype(np.uint8),
      random.normal(size=[B]),
    ),
    'count': random.integers(-9, 9, size=[B]),
  }


# Mappings are read in the order of their keys.
ORDER = (
  lambda nest: nest['count'],
  lambda nest: nest['flag'],
  lambda nest: nest['inner'][0],
  lambda nest: nest['inner'][1],
  lambda nest: nest['vector'],
)


def slow_flat(nest, row):
  """Lists the numbers of one row."""
  numbers = []
  for leaf in ORDER:
    numbers += np.ravel(leaf(nest)[row]).astype(np.float32).tolist()
  return numbers


class FlatTorsoTest(parameterized.TestCase):
  def test_nest_is_flattened_and_joined(self):
    nest = make_nest()
    torso = networks.FlatTorso([])
    features = torso(tf.nest.map_structure(tf.constant, nest))
    self.assertEqual(features.shape, [B, 1 + 1 + 4 + 1 + 3])
    self.assertEqual(features.dtype, tf.float32)
    for row in range(B):
      np.testing.assert_allclose(features[row], slow_flat(nest, row))

  def test_layers_end_with_relu(self):
    nest = make_nest()
    torso = networks.FlatTorso([5, 2])
    tensors = tf.nest.map_structure(tf.constant, nest)
    torso(tensors)
    random = np.random.default_rng(1)
    for variable in torso.variables:
      variable.assign(random.normal(size=variable.shape))
    b_0, w_0, b_1, w_1 = (
      v.numpy() for v in sorted(torso.variables, key=lambda v: v.name)
    )
    self.assertEqual(w_0.shape, (10, 5))
    x = np.array([slow_flat(nest, row) for row in range(B)])
    hidden = np.maximum(x @ w_0 + b_0, 0)
    expected = np.maximum(hidden @ w_1 + b_1, 0)
    self.assertGreater(np.count_nonzero(expected), 0)
    np.testing.assert_allclose(torso(tensors), expected, rtol=1e-4, atol=1e-3)

  @parameterized.parameters([()], [(3,)], [(2, 3)])
  def test_single_array(self, shape):
    x = np.random.default_rng(0).normal(size=[B, *shape]).astype(np.float32)
    features = networks.FlatTorso([])(tf.constant(x))
    np.testing.assert_array_equal(features, x.reshape([B, -1]))

  def test_batch_size_may_be_unknown(self):
    torso = networks.FlatTorso([7])
    call = tf.function(
      torso,
      input_signature=[
        {'a': tf.TensorSpec([None, 2, 3]), 'b': tf.TensorSpec([None])}
      ],
    )
    for size in (1, 5):
      features = call({'a': tf.ones([size, 2, 3]), 'b': tf.ones([size])})
      self.assertEqual(features.shape, [size, 7])


class CheckFlatObservationTest(parameterized.TestCase):
  @parameterized.parameters(
    specs.Array((), np.float32),
    specs.Array((3,), np.float64),
    specs.Array((2, 3), np.uint8),
    specs.Array((), np.bool_),
    specs.DiscreteArray(5),
    specs.BoundedArray((2,), np.int64, 0, 1),
  )
  def test_takes(self, spec):
    networks.check_flat_observation(spec)
    networks.check_flat_observation({'a': spec, 'b': (spec, spec)})

  @parameterized.named_parameters(
    ('image', specs.Array((84, 84, 4), np.uint8), r'\(84, 84, 4\).*uint8'),
    ('empty', specs.Array((0,), np.float32), r'\(0,\).*float32'),
    ('empty_matrix', specs.Array((3, 0), np.float32), r'\(3, 0\)'),
    ('text', dm_env_specs.StringArray((), str), 'numeric'),
    ('objects', specs.Array((2,), object), 'object'),
  )
  def test_refuses(self, spec, message):
    vector = specs.Array((3,), np.float32)
    with self.assertRaisesRegex(ValueError, 'Leaf observation of .*' + message):
      networks.check_flat_observation(spec)
    with self.assertRaisesRegex(ValueError, 'Leaf a/1 of .*' + message):
      networks.check_flat_observation({'a': (vector, spec), 'b': vector})

  def test_refuses_what_is_no_spec(self):
    with self.assertRaisesRegex(
      ValueError, 'Leaf a of the observation spec must be a dm_env spec'
    ):
      networks.check_flat_observation({'a': tf.TensorSpec([3])})

  @parameterized.parameters([{}], [()])
  def test_refuses_nothing(self, *nest):
    with self.assertRaisesRegex(ValueError, 'must have a leaf'):
      networks.check_flat_observation(nest[0] if nest else ())


class CreateVariablesTest(absltest.TestCase):
  def test_makes_all_variables(self):
    network = snt.Sequential([networks.FlatTorso([8]), snt.Linear(2)])
    networks.create_variables(
      network,
      {'a': specs.Array((2, 2), np.float32), 'b': specs.Array((), np.bool_)},
    )
    # Weights and biases of two layers.
    self.assertCountEqual(
      [tuple(v.shape) for v in network.variables], [(5, 8), (8,), (8, 2), (2,)]
    )


if __name__ == '__main__':
  absltest.main()
