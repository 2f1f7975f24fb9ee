"""Tests of `components/networks/sequence_network.py`."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import networks, specs
from repertory.components.config import choices

T, B, D, H = 7, 4, 3, 5
# Starts at once, never, in the middle and twice in a row, at the end.
FIRST = np.zeros([T, B], np.bool_)
FIRST[[0, 3, 3, 4, 6], [0, 0, 2, 2, 3]] = True


def normal(*shape, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=shape), tf.float32)


def make_state(core, num_rows=B):
  """A state other than zeros."""
  leaves = tree.flatten(core.initial_state(num_rows))
  random = [normal(*leaf.shape, seed=i) for i, leaf in enumerate(leaves)]
  state = tree.unflatten_as(core.initial_state(num_rows), random)
  if isinstance(state, networks.GTrXLState):
    is_valid = tf.cast(state.is_valid > 0, tf.float32)
    state = state._replace(is_valid=is_valid)
  return state


def make_core(kind):
  options = {'layers': 2, 'heads': 1, 'window': 3} if kind == 'gtrxl' else {}
  return networks.make_core(kind, H, **options)


def assert_close(found, expected):
  tree.assert_same_structure(found, expected)
  for x, y in zip(tree.flatten(found), tree.flatten(expected), strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


class TestParts:
  @pytest.mark.parametrize(
    ('kind', 'shapes'),
    [
      ('none', []),
      ('lstm', [(H,), (H,)]),
      ('gru', [(H,)]),
      ('gtrxl', [(2, 3, H), (3,)]),
    ],
  )
  def test_state_spec(self, kind, shapes):
    network, _ = make_network(kind)
    spec = network.state_spec()
    state = network.initial_state(B)
    tree.assert_same_structure(spec, state)
    expected = [specs.Array(shape, np.float32) for shape in shapes]
    assert tree.flatten(spec) == expected
    for leaf_spec, leaf in zip(tree.flatten(spec), tree.flatten(state)):
      assert leaf.shape == [B, *leaf_spec.shape]


def make_network(kind):
  spec = {'x': specs.Array((2, 2), np.float32), 'y': specs.Array((), np.int32)}
  network = networks.SequenceNetwork(
    networks.ObservationTorso(spec, (6,)),
    make_core(kind),
    networks.ActorCriticHead(3),
  )
  observation = {
    'x': normal(T, B, 2, 2),
    'y': tf.reshape(tf.range(T * B), [T, B]) % 5,
  }
  return network, observation


class TestSequenceNetwork:
  @pytest.mark.parametrize(
    ('kind', 'jit'),
    [('none', False), ('lstm', None), ('gru', True), ('gtrxl', None)],
  )
  def test_unroll_equals_steps(self, kind, jit):
    network, observation = make_network(kind)
    state = network.initial_state(B)
    if kind != 'none':
      state = make_state(make_core(kind))

    def take_steps(observation, first, state):
      outputs = []
      for t in range(T):
        state = networks.reset_where(first[t], state)
        now = tree.map_structure(lambda leaf, t=t: leaf[t], observation)
        output, state = network.step(now, state)
        assert output.parameters.shape == [B, 3]
        outputs.append(output)
      return tree.map_structure(lambda *rows: tf.stack(rows), *outputs), state

    def learn(function):
      """Returns the results, and gradients of a sum that weighs all."""
      with tf.GradientTape() as tape:
        results = function(observation, tf.constant(FIRST), state)
        loss = tf.add_n(
          [
            tf.reduce_sum(leaf * normal(*leaf.shape, seed=10 + i))
            for i, leaf in enumerate(tree.flatten(results))
          ]
        )
      return results, tape.gradient(loss, network.trainable_variables)

    expected = learn(take_steps)
    call = functools.partial(learn, network.unroll)
    if jit is not None:
      call = tf.function(call, jit_compile=jit, autograph=False)
    assert_close(call(), expected)


def test_names_of_cores_are_those_of_the_settings():
  assert list(choices.CORES) == list(networks.CORES)
