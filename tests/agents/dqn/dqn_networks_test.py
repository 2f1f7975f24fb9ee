"""Tests of `agents/dqn/networks.py`."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from acme import specs

from repertory.agents import dqn

FLOAT = specs.Array((), np.float32)
VECTOR = specs.Array((3,), np.float32)


def make_spec(observations=VECTOR, actions=None):
  if actions is None:
    actions = specs.DiscreteArray(4)
  return specs.EnvironmentSpec(observations, actions, FLOAT, FLOAT)


def make_network(spec, **config):
  return dqn.DQNBuilder(dqn.DQNConfig(**config)).make_network(spec)


class MakeNetworkTest(parameterized.TestCase):
  @parameterized.product(dueling=[True, False], hidden_sizes=[(), (8,), (8, 5)])
  def test_shapes(self, dueling, hidden_sizes):
    network = make_network(
      make_spec(), dueling=dueling, hidden_sizes=hidden_sizes
    )
    sizes = [3, *hidden_sizes]
    weights = list(itertools.pairwise(sizes))
    weights += [(sizes[-1], 4), (sizes[-1], 1)] if dueling else [(sizes[-1], 4)]
    biases = [(w[-1],) for w in weights]
    # The variables are there before the first call.
    self.assertCountEqual(
      [tuple(v.shape) for v in network.variables], weights + biases
    )
    self.assertEqual(network(tf.zeros([6, 3])).shape, [6, 4])

  def test_nested_observations(self):
    observations = {'a': VECTOR, 'b': specs.Array((2, 2), np.bool_)}
    network = make_network(make_spec(observations))
    values = network({'a': tf.zeros([5, 3]), 'b': tf.zeros([5, 2, 2], tf.bool)})
    self.assertEqual(values.shape, [5, 4])

  @parameterized.named_parameters(
    ('continuous', specs.BoundedArray((2,), np.float32, -1, 1)),
    ('bounded_integer', specs.BoundedArray((), np.int32, 0, 3)),
    ('several', [specs.DiscreteArray(4), specs.DiscreteArray(2)]),
    ('nested', {'move': specs.DiscreteArray(4)}),
  )
  def test_refuses_actions(self, actions):
    with self.assertRaisesRegex(
      ValueError, 'DQN needs an action spec that is one DiscreteArray, got '
    ) as caught:
      make_network(make_spec(actions=actions))
    self.assertIn(repr(actions), str(caught.exception))

  @parameterized.named_parameters(
    ('alone', lambda image: image, 'observation'),
    ('in_a_nest', lambda image: {'x': VECTOR, 'eye': image}, 'eye'),
  )
  def test_refuses_images(self, wrap, leaf):
    image = specs.BoundedArray((84, 84, 4), np.uint8, 0, 255)
    with self.assertRaisesRegex(
      ValueError, rf'Leaf {leaf} of .*\(84, 84, 4\).*a network of your own'
    ):
      make_network(make_spec(wrap(image)))


if __name__ == '__main__':
  absltest.main()
