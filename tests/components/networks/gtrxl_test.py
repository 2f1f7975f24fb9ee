"""Tests of `components/networks/gtrxl.py`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks

D, T, B, M = 6, 15, 3, 4
# Never, at the start and in the middle, twice in a row and at the end.
FIRST = np.zeros([T, B], np.bool_)
FIRST[[0, 7, 5, 6, 14], [1, 1, 2, 2, 2]] = True


def make_core(size=D, heads=2, layers=2, window=M):
  """Returns a core with arbitrary weights."""
  core = networks.GTrXL(size, heads=heads, layers=layers, window=window)
  core(tf.zeros([1, 2]), core.initial_state(1))
  for index, variable in enumerate(core.trainable_variables):
    random = np.random.default_rng(index)
    variable.assign_add(random.normal(size=variable.shape) / 2)
  return core


def make_inputs(length=T):
  random = np.random.default_rng(7)
  return random.normal(size=[length, B, 2]).astype(np.float32)


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


class Twin:
  """Slow GTrXL of one environment in NumPy, from the papers' equations.

  Keeps all inputs of an episode, and forgets none.
  """

  def __init__(self, core, window=M):
    self._core = core
    self._window = window
    self.history = [[] for _ in core._layers]

  def reset(self):
    self.history = [[] for _ in self._core._layers]

  def step(self, inputs):
    x = self._linear(self._core._project, inputs)
    for layer, past in zip(self._core._layers, self.history, strict=True):
      past.append(x)
      attended = self._attend(layer, past)
      x = self._gate(layer._gates[0], x, np.maximum(attended, 0))
      hidden, _, output = layer._perceptron._layers
      y = np.maximum(self._linear(hidden, self._norm(layer._norms[1], x)), 0)
      y = self._linear(output, y)
      x = self._gate(layer._gates[1], x, np.maximum(y, 0))
    return x

  def _attend(self, layer, past):
    """Transformer-XL, section 3.3, with the four terms of a score apart."""
    attention = layer._attention
    heads, width = attention._content_bias.shape
    size = heads * width
    normed = [self._norm(layer._norms[0], x) for x in past]
    found = []
    for head in range(heads):
      own = slice(head * width, (head + 1) * width)
      w_q, w_k, w_v, w_r = (
        linear.w.numpy()[:, own]
        for linear in (
          attention._query.module, attention._key.module,
          attention._value.module, attention._position,
        )
      )  # fmt: skip
      u = attention._content_bias.numpy()[head]
      v = attention._position_bias.numpy()[head]
      query = normed[-1] @ w_q
      scores, values = [], []
      for distance in range(min(self._window, len(past) - 1) + 1):
        at = normed[-1 - distance]
        phases = [distance / 10_000 ** (i / size) for i in range(0, size, 2)]
        r = np.concatenate([np.sin(phases), np.cos(phases)])[:size]
        score = query @ (at @ w_k) + query @ (r @ w_r)
        score += u @ (at @ w_k) + v @ (r @ w_r)
        scores.append(score / np.sqrt(width))
        values.append(at @ w_v)
      weights = np.exp(scores) / np.exp(scores).sum()
      found.append(weights @ np.array(values))
    return self._linear(attention._output, np.concatenate(found))

  def _gate(self, gate, x, y):
    """GTrXL, section 3.2."""
    w_r, w_z, w_g = np.split(gate._of_y.module.w.numpy(), 3, axis=1)
    u_r, u_z = np.split(gate._of_x.module.w.numpy(), 2, axis=1)
    u_g = gate._of_reset_x.module.w.numpy()
    r = sigmoid(y @ w_r + x @ u_r)
    z = sigmoid(y @ w_z + x @ u_z - gate._bias.numpy())
    h = np.tanh(y @ w_g + (r * x) @ u_g)
    return (1 - z) * x + z * h

  def _linear(self, linear, x):
    return x @ linear.module.w.numpy() + linear.module.b.numpy()

  def _norm(self, norm, x):
    normal = (x - x.mean()) / np.sqrt(x.var() + norm._eps)
    return normal * norm.scale.numpy() + norm.offset.numpy()


def run_twin(core, inputs, first, window=M):
  """Returns outputs `[T, B, D]` and the state after them."""
  outputs, states = [], []
  for row in range(inputs.shape[1]):
    twin = Twin(core, window)
    of_row = []
    for x, is_first in zip(inputs[:, row], first[:, row], strict=True):
      if is_first:
        twin.reset()
      of_row.append(twin.step(x.astype(np.float64)))
    outputs.append(of_row)
    kept = np.array(twin.history)[:, -window:]  # [L, ≤ M, D]
    num_empty = window - kept.shape[1]
    state = np.pad(kept, [(0, 0), (num_empty, 0), (0, 0)])
    states.append((state, np.arange(window) >= num_empty))
  memory, is_valid = map(np.array, zip(*states, strict=True))
  return np.array(outputs).swapaxes(0, 1), networks.GTrXLState(memory, is_valid)


def assert_close(found, expected):
  # Single precision through several layers, against double precision.
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def unroll_in_pieces(core, inputs, first, ends, jit):
  """Unrolls a core from piece to piece, from an empty memory."""
  unroll = tf.function(
    functools.partial(networks.unroll, core), autograph=False, jit_compile=jit
  )
  outputs, state = [], core.initial_state(inputs.shape[1])
  for piece, of_piece in zip(np.split(inputs, ends), np.split(first, ends)):
    output, state = unroll(tf.constant(piece), tf.constant(of_piece), state)
    outputs.append(output)
  return np.concatenate(outputs), state


class TestTwin:
  # Longer than the window, shorter, and both.
  @pytest.mark.parametrize(
    ('ends', 'jit'), [([], True), ([3, 6, 7, 9, 12], None), ([2, 11], None)]
  )
  def test_unrolls(self, ends, jit):
    core, inputs = make_core(), make_inputs()
    expected, last = run_twin(core, inputs, FIRST)
    found, state = unroll_in_pieces(core, inputs, FIRST, ends, jit)
    assert_close(found, expected)
    assert_close(state.inputs, last.inputs)
    np.testing.assert_array_equal(state.is_valid, last.is_valid)

  def test_steps(self):
    core, inputs = make_core(), make_inputs()
    expected, last = run_twin(core, inputs, FIRST)
    step = tf.function(
      core,
      input_signature=[
        tf.TensorSpec([None, 2]),
        networks.GTrXLState(
          tf.TensorSpec([None, 2, M, D]), tf.TensorSpec([None, M])
        ),
      ],
      autograph=False,
    )
    state, found = core.initial_state(B), []
    for x, first in zip(inputs, FIRST, strict=True):
      state = networks.reset_where(tf.constant(first), state)
      output, state = step(tf.constant(x), state)
      found.append(output)
    assert_close(found, expected)
    assert_close(state.inputs, last.inputs)
    np.testing.assert_array_equal(state.is_valid, last.is_valid)

  # An odd size, one head and layer, and a window that is never full.
  @pytest.mark.parametrize(
    ('size', 'heads', 'layers', 'window'), [(5, 1, 1, 1), (8, 4, 3, 20)]
  )
  def test_sizes(self, size, heads, layers, window):
    core, inputs = make_core(size, heads, layers, window), make_inputs()
    expected, last = run_twin(core, inputs, FIRST, window)
    found, state = unroll_in_pieces(core, inputs, FIRST, [6], None)
    assert_close(found, expected)
    assert_close(state.inputs, last.inputs)


def test_gates_are_open_to_inputs_at_first():
  core = networks.GTrXL(D, heads=2, layers=2, window=M)
  inputs = tf.constant(make_inputs())
  outputs, _ = networks.unroll(
    core, inputs, tf.constant(FIRST), core.initial_state(B)
  )
  for layer in core._layers:
    for gate in layer._gates:
      np.testing.assert_array_equal(gate._bias, [2] * D)
      gate._bias.assign([50] * D)
  outputs, _ = networks.unroll(
    core, inputs, tf.constant(FIRST), core.initial_state(B)
  )
  assert_close(outputs, core._project(inputs))


def test_gradients_are_finite_and_reach_all_variables():
  core, inputs = make_core(layers=1), tf.constant(make_inputs())

  @tf.function(autograph=False, jit_compile=True)
  def differentiate():
    with tf.GradientTape() as tape:
      tape.watch(inputs)
      # Inputs far from each other give weights of exactly 0 and 1.
      outputs, _ = networks.unroll(
        core, 100 * inputs, tf.constant(FIRST), core.initial_state(B)
      )
      loss = tf.reduce_sum(outputs**2)
    return tape.gradient(loss, [inputs, *core.trainable_variables])

  for gradient in differentiate():
    assert np.isfinite(gradient).all()
    assert np.any(gradient != 0)


def test_heads_must_divide_the_size():
  with pytest.raises(ValueError, match='multiple of heads = 4, got 6'):
    networks.GTrXL(6, heads=4, layers=1, window=2)
