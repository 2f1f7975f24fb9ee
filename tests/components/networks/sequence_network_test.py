"""Tests of `components/networks/sequence_network.py`."""

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
  return tree.unflatten_as(core.initial_state(num_rows), random)


def loop(core, inputs, first, state):
  """The same, row by row in Python."""
  rows, ends = [], []
  for b in range(inputs.shape[1]):
    row_state = tree.map_structure(lambda leaf, b=b: leaf[b : b + 1], state)
    outputs = []
    for t in range(inputs.shape[0]):
      if first[t, b]:
        row_state = core.initial_state(1)
      output, row_state = core(inputs[t, b : b + 1], row_state)
      outputs.append(output[0])
    rows.append(tf.stack(outputs))
    ends.append(row_state)
  state = tree.map_structure(lambda *leaves: tf.concat(leaves, 0), *ends)
  return tf.stack(rows, axis=1), state


def assert_close(found, expected):
  tree.assert_same_structure(found, expected)
  for x, y in zip(tree.flatten(found), tree.flatten(expected), strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def learn(function, core, inputs, first, state):
  """Returns outputs, end state, and gradients of a sum that weighs all."""
  with tf.GradientTape() as tape:
    tape.watch([inputs, *tree.flatten(state)])
    outputs, end = function(core, inputs, first, state)
    leaves = [outputs, *tree.flatten(end)]
    loss = tf.add_n(
      [
        tf.reduce_sum(leaf * normal(*leaf.shape, seed=10 + i))
        for i, leaf in enumerate(leaves)
      ]
    )
  sources = [*core.trainable_variables, inputs, *tree.flatten(state)]
  return outputs, end, tape.gradient(loss, sources)


class TestUnroll:
  @pytest.mark.parametrize(
    ('kind', 'mode', 'length'), [('gru', 'eager', T), ('lstm', 'xla', T),
                                 ('lstm', 'graph', 1)]
  )  # fmt: skip
  def test_equals_the_loop(self, kind, mode, length):
    core = networks.make_core(kind, H)
    inputs, state = normal(length, B, D), make_state(core)
    first = FIRST[:length]

    def call(inputs, first, state):
      return learn(networks.unroll, core, inputs, first, state)

    # Sonnet's variables are made before the graph is.
    core(inputs[0], state)
    if mode != 'eager':
      call = tf.function(call, jit_compile=mode == 'xla', autograph=False)
    outputs, end, gradients = call(inputs, tf.constant(first), state)
    expected = learn(loop, core, inputs, first, state)
    assert outputs.shape == [length, B, H]
    assert_close((outputs, end), expected[:2])
    assert len(gradients) == len(expected[2])
    for found, gradient in zip(gradients, expected[2], strict=True):
      np.testing.assert_allclose(found, gradient, rtol=1e-3, atol=1e-4)

  def test_refuses_an_unknown_length(self):
    core = networks.make_core('lstm', H)
    call = tf.function(
      lambda inputs, first: networks.unroll(
        core, inputs, first, core.initial_state(B)
      ),
      input_signature=[
        tf.TensorSpec([None, B, D]),
        tf.TensorSpec([None, B], tf.bool),
      ],
    )
    with pytest.raises(ValueError, match='inputs must have a known length'):
      call(normal(T, B, D), tf.constant(FIRST))


class TestParts:
  def test_refuses_other_cores(self):
    with pytest.raises(
      ValueError, match=r"kind must be one of \[.*'lstm'.*\], got 'rnn'"
    ):
      networks.make_core('rnn', H)

  @pytest.mark.parametrize('kind', ['none', 'lstm', 'gru'])
  def test_state_spec(self, kind):
    network, _ = make_network(kind)
    spec = network.state_spec()
    state = network.initial_state(B)
    tree.assert_same_structure(spec, state)
    for leaf_spec, leaf in zip(tree.flatten(spec), tree.flatten(state)):
      assert leaf_spec == specs.Array((H,), np.float32)
      assert leaf.shape == [B, *leaf_spec.shape]


def make_network(kind):
  spec = {'x': specs.Array((2, 2), np.float32), 'y': specs.Array((), np.int32)}
  network = networks.SequenceNetwork(
    networks.ObservationTorso(spec, (6,)),
    networks.make_core(kind, H),
    networks.ActorCriticHead(3),
  )
  observation = {
    'x': normal(T, B, 2, 2),
    'y': tf.reshape(tf.range(T * B), [T, B]) % 5,
  }
  return network, observation


class TestSequenceNetwork:
  @pytest.mark.parametrize(
    ('kind', 'jit'), [('none', False), ('lstm', None), ('gru', True)]
  )
  def test_unroll_equals_steps(self, kind, jit):
    network, observation = make_network(kind)
    state = network.initial_state(B)
    if kind != 'none':
      state = make_state(networks.make_core(kind, H))
    now, outputs = state, []
    for t in range(T):
      now = networks.reset_where(tf.constant(FIRST[t]), now)
      step = tree.map_structure(lambda leaf, t=t: leaf[t], observation)
      output, now = network.step(step, now)
      assert output.parameters.shape == [B, 3]
      outputs.append(output)
    expected = tree.map_structure(lambda *leaves: tf.stack(leaves), *outputs)
    unroll = network.unroll
    if jit is not None:
      unroll = tf.function(unroll, jit_compile=jit, autograph=False)
    assert_close(
      unroll(observation, tf.constant(FIRST), state), (expected, now)
    )


def test_names_of_cores_are_those_of_the_settings():
  assert list(choices.CORES) == list(networks.CORES)
