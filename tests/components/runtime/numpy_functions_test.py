"""Tests of functions run by NumPy, against TensorFlow."""

import time

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components.runtime import compilation, numpy_functions

_X = tf.TensorSpec([3, 4], tf.float32)
_Y = tf.TensorSpec([3, 4], tf.float32)
_BITS = tf.TensorSpec([3], tf.uint64)
_PLACES = tf.TensorSpec([3], tf.int32)
_SIGNATURE = (_X, _Y, _BITS, _PLACES)

_WEIGHTS = tf.constant(np.linspace(-1, 1, 8).reshape(4, 2), tf.float32)

# Each of x and y, floats `[3, 4]`; of bits, `[3]`; and of indices, `[3]`.
_FUNCTIONS = {
  'arithmetic': lambda x, y, b, p: ((x + y) * x - y) / (2.0 + y * y),
  'one number': lambda x, y, b, p: 3.0 - tf.reduce_sum(x) * 2.0,
  'power': lambda x, y, b, p: tf.pow(tf.abs(x), 1.5),
  'roots': lambda x, y, b, p: tf.sqrt(tf.abs(x)) + tf.math.rsqrt(1 + y * y),
  'root of a negative': lambda x, y, b, p: tf.sqrt(x),
  'division by 0': lambda x, y, b, p: x / tf.zeros([4]),
  'logarithms': lambda x, y, b, p: tf.math.log(tf.abs(x)) + tf.math.log1p(y**2),
  'exponentials': lambda x, y, b, p: tf.exp(x) + tf.nn.softplus(y),
  'softplus of a number': lambda x, y, b, p: x * tf.nn.softplus(x[0, 0]),
  'channels': lambda x, y, b, p: tf.nn.bias_add(
    tf.reshape(x, [1, 3, 2, 2]), [1.0, 2.0]
  ),
  'the same twice': lambda x, y, b, p: (x, x, x[:1]),
  'angles': lambda x, y, b, p: tf.cos(x) + tf.sin(y),
  'elu': lambda x, y, b, p: tf.nn.elu(x),
  'relu': lambda x, y, b, p: tf.nn.relu(x),
  'tanh': lambda x, y, b, p: tf.tanh(x),
  'softmax': lambda x, y, b, p: tf.nn.softmax(x) + tf.nn.log_softmax(y),
  'cross-entropy': lambda x, y, b, p: (
    tf.nn.sparse_softmax_cross_entropy_with_logits(p, x)
  ),
  'extremes': lambda x, y, b, p: tf.maximum(x, y) - tf.minimum(x, 0.1),
  'choice': lambda x, y, b, p: tf.where((x > y) & ~(x >= 0.5), x, y),
  'comparisons': lambda x, y, b, p: tf.where((x < 0) | (x <= y), 1, 2),
  'equal': lambda x, y, b, p: tf.where(tf.equal(p, 1), p, p + 1),
  'other': lambda x, y, b, p: tf.cast(tf.not_equal(p, 1), tf.int32),
  'floor': lambda x, y, b, p: tf.cast(tf.floor(3 * x), tf.int32),
  'negative': lambda x, y, b, p: -tf.stop_gradient(tf.identity(x)),
  'product': lambda x, y, b, p: tf.nn.bias_add(x @ _WEIGHTS, [1.0, 2.0]),
  'transposed': lambda x, y, b, p: tf.matmul(x, y, transpose_b=True),
  'first transposed': lambda x, y, b, p: tf.matmul(x, y, transpose_a=True),
  'largest': lambda x, y, b, p: tf.argmax(x, -1, output_type=tf.int32),
  'reductions': lambda x, y, b, p: (
    tf.reduce_max(x, -1) - tf.reduce_min(y, 1) + tf.reduce_mean(x, axis=1)
  ),
  'kept axes': lambda x, y, b, p: x - tf.reduce_sum(x, -1, keepdims=True),
  'sum of integers': lambda x, y, b, p: tf.reduce_sum(p),
  'cumulated': lambda x, y, b, p: tf.cumsum(x, -1) + tf.cumsum(y, 0),
  'cumulated integers': lambda x, y, b, p: tf.cumsum(p),
  'shape': lambda x, y, b, p: tf.reshape(x, [tf.shape(y)[0], 2, 2]),
  'axes': lambda x, y, b, p: tf.squeeze(tf.expand_dims(x, 1), 1)[:, None, :2],
  'all axes': lambda x, y, b, p: tf.squeeze(x[:1, :1]),
  'slices': lambda x, y, b, p: x[..., 1] + y[:, -1] + x[1:, ::2][0, 1],
  'backwards': lambda x, y, b, p: x[::-1, :-1],
  'joined': lambda x, y, b, p: tf.concat([x, y[:, :1]], -1),
  'stacked': lambda x, y, b, p: tf.stack([x, y], 1),
  'parts': lambda x, y, b, p: tf.add(*tf.split(x, 2, -1)),
  'unequal parts': lambda x, y, b, p: (
    tf.add(*tf.split(x, [2, 2], -1)) - tf.split(y, [1, 3], -1)[0]
  ),
  'the rest of the parts': lambda x, y, b, p: (
    tf.split(x, [-1, 3], -1),
    tf.split(x, [1, -1, 1], 1),
    tf.split(y, [2, -1], 0),
  ),
  'part as it is': lambda x, y, b, p: tf.identity(tf.split(x, [-1, 3], 1)[1]),
  'padded': lambda x, y, b, p: tf.pad(x, [[0, 0], [1, 2]], constant_values=-9),
  'padded with zeros': lambda x, y, b, p: tf.pad(x, [[1, 0], [0, 0]]),
  'looked up': lambda x, y, b, p: (
    tf.gather(tf.constant([[1, 2], [3, 4], [5, 6], [7, 8]]), p),
    tf.gather(x, tf.constant([1, 3]), axis=-1),
  ),
  'filled': lambda x, y, b, p: tf.fill([3, 4], x[0, 0]) + tf.zeros_like(y),
  'bits': lambda x, y, b, p: tf.bitwise.bitwise_xor(
    tf.bitwise.right_shift(b, tf.constant(7, tf.uint64)),
    tf.bitwise.bitwise_and(b * 3, tf.constant(2**40 - 1, tf.uint64)),
  ),
}


def _compile(function, signature=_SIGNATURE):
  return compilation.CompiledFunction(function, signature, False)


def test_computes_the_same_as_tensorflow():
  """Each result is an array of its own."""
  compiled = _compile(
    lambda *inputs: {
      'absent': None, **{k: f(*inputs) for k, f in _FUNCTIONS.items()}
    }
  )  # fmt: skip
  translated = numpy_functions.NumpyFunction(compiled, lambda: 0)
  random = np.random.default_rng(1)
  arguments = (
    random.normal(size=[3, 4]).astype(np.float32),
    random.normal(size=[3, 4]).astype(np.float32),
    random.integers(2**64, size=[3], dtype=np.uint64),
    random.integers(4, size=[3], dtype=np.int32),
  )
  found = compiled.unflatten(translated(*arguments))
  expected = compiled.unflatten(compiled(*arguments))
  assert found.pop('absent') is expected.pop('absent') is None
  arrays = [*arguments, *tree.flatten(found)]
  for ours, theirs in zip(arrays[4:], tree.flatten(expected), strict=True):
    theirs = theirs.numpy()
    assert type(ours) is np.ndarray
    assert ours.flags.writeable
    assert sum(np.shares_memory(ours, one) for one in arrays) == 1
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


def test_large_product_of_a_row():
  """Large matrix–vector products are computed in another way."""
  weights = np.random.default_rng(1).normal(size=[20, 700])
  weights = tf.constant(weights, tf.float32)
  compiled = _compile(lambda x: x @ weights, (tf.TensorSpec([1, 20]),))
  translated = numpy_functions.NumpyFunction(compiled, lambda: 0)
  row = np.linspace(0, 1, 20, dtype=np.float32)[None]
  np.testing.assert_allclose(
    translated(row)[0], compiled(row)[0].numpy(), rtol=1e-5, atol=1e-5
  )


def test_variables_are_read_when_they_have_changed():
  variable, version = tf.Variable([1.0, 2.0]), [0]
  compiled = _compile(lambda x: x * variable, (tf.TensorSpec([2]),))
  translated = numpy_functions.NumpyFunction(compiled, lambda: version[0])
  ones = np.ones([2], np.float32)
  assert translated(ones)[0].tolist() == [1, 2]
  variable.assign([3.0, 4.0])
  assert translated(ones)[0].tolist() == [1, 2]
  version[0] = 1
  assert translated(ones)[0].tolist() == [3, 4]


_COUNTER = tf.Variable(0)


@pytest.mark.parametrize(
  ('problem', 'function'),
  [
    ('is not known', lambda x, y, b, p: tf.math.erf(x)),
    ('has effects', lambda x, y, b, p: (x, _COUNTER.assign_add(1))[0]),
    ('too much to compute', lambda x, y, b, p: x @ tf.ones([4, 10_000])),
    ('is no constant', lambda x, y, b, p: x[p[0]]),
    ('reverse of', lambda x, y, b, p: tf.cumsum(x, reverse=True)),
    ('shape', lambda x, y, b, p: tf.reshape(x, p[:2])),
  ],
)
def test_refuses_what_it_cannot_translate(problem, function):
  compiled = _compile(function)
  with pytest.raises(numpy_functions.CannotTranslateError, match=problem):
    numpy_functions.NumpyFunction(compiled, lambda: 0)
  assert numpy_functions.find_faster(compiled, lambda: 0) is None


def _slowed(call):
  def call_slowly(self, *leaves):
    time.sleep(0.001)
    return call(self, *leaves)

  return call_slowly


@pytest.mark.skipif(
  not compilation.WRAPS_OPERATIONS, reason='There is an accelerator.'
)
def test_finds_the_faster_one_that_computes_the_same(monkeypatch):
  compiled = _compile(lambda x, y, b, p: (x - y, p < 1))
  for slow in (compilation.CompiledFunction, numpy_functions.NumpyFunction):
    with monkeypatch.context() as patch:
      patch.setattr(slow, '__call__', _slowed(slow.__call__))
      faster = numpy_functions.find_faster(compiled, lambda: 0)
    assert (faster is None) == (slow is numpy_functions.NumpyFunction)
  slow = compilation.CompiledFunction
  monkeypatch.setattr(slow, '__call__', _slowed(slow.__call__))
  monkeypatch.setitem(numpy_functions.ELEMENTWISE, 'Less', '{0} <= {1}')
  assert numpy_functions.find_faster(compiled, lambda: 0) is None


def test_integers_that_tensorflow_refuses_are_no_failure():
  table = tf.constant([[1.0]])
  compiled = _compile(lambda x, y, b, p: tf.gather(table, p))
  assert numpy_functions.find_faster(compiled, lambda: 0) is None
