"""Tests of functions run by NumPy, against TensorFlow."""

import time

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.runtime import compilation, numpy_functions
from repertory.components.runtime.numpy_translations import CannotTranslateError

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
  'square': lambda x, y, b, p: tf.square(x) + tf.math.squared_difference(x, y),
  'power': lambda x, y, b, p: tf.pow(tf.abs(x), 1.5),
  'roots': lambda x, y, b, p: tf.sqrt(tf.abs(x)) + tf.math.rsqrt(1 + y * y),
  'root of a negative': lambda x, y, b, p: tf.sqrt(x),
  'division by 0': lambda x, y, b, p: x / tf.zeros([4]),
  'logarithms': lambda x, y, b, p: tf.math.log(tf.abs(x)) + tf.math.log1p(y**2),
  'exponentials': lambda x, y, b, p: tf.exp(x) + tf.nn.softplus(y),
  'softplus of a number': lambda x, y, b, p: x * tf.nn.softplus(x[0, 0]),
  'root of a number': lambda x, y, b, p: x * tf.math.rsqrt(tf.abs(y[0, 0])),
  'of a constant': lambda x, y, b, p: x * tf.math.rsqrt(tf.constant(4.0)),
  'large numbers': lambda x, y, b, p: tf.cos(x * 1e38 * 1e3) + tf.exp(99 * x),
  'channels': lambda x, y, b, p: tf.nn.bias_add(
    tf.reshape(x, [1, 3, 2, 2]), [1.0, 2.0]
  ),
  'no axis': lambda x, y, b, p: tf.reduce_sum(x)[()],
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
  'flat': lambda x, y, b, p: tf.reshape(x, [-1]),
  'same shape': lambda x, y, b, p: tf.reshape(x, [3, 4]) + 1,
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
  'bits as floats': lambda x, y, b, p: tf.cast(b, tf.float32) * 2.0**-64,
  'nested': lambda x, y, b, p: {'first': (x, None), 'second': [p, 2 * p]},
}


def _compile(function, signature=_SIGNATURE):
  return compilation.CompiledFunction(function, signature, False)


def _translate(function, signature=_SIGNATURE):
  return numpy_functions.NumpyFunction(_compile(function, signature), lambda: 0)


@pytest.mark.parametrize('name', _FUNCTIONS)
def test_is_what_tensorflow_computes(name):
  compiled = _compile(_FUNCTIONS[name])
  translated = numpy_functions.NumpyFunction(compiled, lambda: 0)
  random = np.random.default_rng(1)
  for _ in range(3):
    arguments = (
      random.normal(size=[3, 4]).astype(np.float32),
      random.normal(size=[3, 4]).astype(np.float32),
      random.integers(2**64, size=[3], dtype=np.uint64),
      random.integers(4, size=[3], dtype=np.int32),
    )
    expected = compiled(*arguments)
    found = translated(*arguments)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
      if theirs is None:
        assert ours is None
        continue
      theirs = theirs.numpy()
      assert type(ours) is np.ndarray
      assert ours.flags.writeable
      assert not any(np.shares_memory(ours, one) for one in arguments)
      others = [one for one in found if one is not ours and one is not None]
      assert not any(np.shares_memory(ours, one) for one in others)
      assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
      np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize('width', [20, 700])
def test_a_single_row(width):
  """Large matrix–vector products are computed in another way."""
  weights = np.random.default_rng(1).normal(size=[20, width])
  weights = tf.constant(weights, tf.float32)
  signature = (tf.TensorSpec([1, 20], tf.float32),)
  compiled = _compile(lambda x: x @ weights, signature)
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
  (before,) = translated(ones)
  assert before.tolist() == [1, 2]
  variable.assign([3.0, 4.0])
  assert translated(ones)[0].tolist() == [1, 2]
  version[0] = 1
  assert translated(ones)[0].tolist() == [3, 4]
  assert before.tolist() == [1, 2]
  variable.assign_add([1.0, 1.0])
  assert translated(ones)[0].tolist() == [3, 4]


def _assigned(x, y, bits, places):
  _COUNTER.assign_add(1)
  return x


_COUNTER = tf.Variable(0)
_REFUSED = {
  'is not known': lambda x, y, b, p: tf.math.erf(x),
  'has effects': _assigned,
  'too much to compute': lambda x, y, b, p: x @ tf.ones([4, 10_000]),
  'is no constant': lambda x, y, b, p: x[p[0]],
  'channels are not last': lambda x, y, b, p: tf.nn.bias_add(
    tf.reshape(x, [1, 2, 2, 3]), [1.0, 2.0], data_format='NCHW'
  ),
  'is of integers': lambda x, y, b, p: tf.reduce_mean(p),
  'shifted out': lambda x, y, b, p: tf.bitwise.right_shift(
    b, tf.constant(64, tf.uint64)
  ),
  'are shifted out': lambda x, y, b, p: tf.bitwise.right_shift(
    p, tf.constant([-1, 0, 1])
  ),
  'exclusive or reverse': lambda x, y, b, p: tf.cumsum(x, reverse=True),
  'shape': lambda x, y, b, p: tf.reshape(x, p[:2]),
}


@pytest.mark.parametrize('problem', _REFUSED)
def test_says_what_it_cannot(problem):
  with pytest.raises(CannotTranslateError, match=problem):
    _translate(_REFUSED[problem])


class _Slow:
  """A slower compiled function."""

  def __init__(self, function, seconds):
    self._function = function
    self._seconds = seconds

  def __getattr__(self, name):
    return getattr(self._function, name)

  def __call__(self, *leaves):
    time.sleep(self._seconds)
    return self._function(*leaves)


@pytest.mark.skipif(
  not compilation.WRAPS_OPERATIONS, reason='There is an accelerator.'
)
def test_the_faster_one_is_found(monkeypatch):
  compiled = _compile(_FUNCTIONS['arithmetic'])
  assert numpy_functions.find_faster(_Slow(compiled, 0.001), lambda: 0)
  call = numpy_functions.NumpyFunction.__call__

  def call_slowly(self, *leaves):
    time.sleep(0.001)
    return call(self, *leaves)

  monkeypatch.setattr(numpy_functions.NumpyFunction, '__call__', call_slowly)
  assert numpy_functions.find_faster(compiled, lambda: 0) is None


def test_what_cannot_be_translated_is_not_faster():
  compiled = _compile(_REFUSED['is not known'])
  assert numpy_functions.find_faster(compiled, lambda: 0) is None


_WEIGHT = tf.Variable(tf.zeros([4, 2]))


@pytest.mark.skipif(
  not compilation.WRAPS_OPERATIONS, reason='There is an accelerator.'
)
@pytest.mark.parametrize(
  ('operation', 'wrong', 'function'),
  [
    # Zeros would hide it, as would products with zeros.
    ('Tanh', 'np.sin({0})', lambda x, y, b, p: tf.tanh(x) @ _WEIGHT),
    ('Less', '{0} <= {1}', lambda x, y, b, p: p < 1),
    ('BitwiseXor', '{0} | {1}', lambda x, y, b, p: b ^ (b * 3)),
  ],
)
def test_other_values_are_no_faster(monkeypatch, operation, wrong, function):
  slow = _Slow(_compile(function), 0.001)
  assert numpy_functions.find_faster(slow, lambda: 0)
  expressions = numpy_functions.numpy_translations.numpy_operations.EXPRESSIONS
  monkeypatch.setitem(expressions, operation, wrong)
  assert numpy_functions.find_faster(slow, lambda: 0) is None
  np.testing.assert_array_equal(_WEIGHT, np.zeros([4, 2]))


def test_integers_that_tensorflow_refuses_are_no_failure():
  table = tf.constant([[1.0]])
  compiled = _compile(lambda x, y, b, p: tf.gather(table, p))
  assert numpy_functions.find_faster(compiled, lambda: 0) is None
