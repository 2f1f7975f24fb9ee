"""Tests of compiled functions: threads, XLA flags and results."""

import os

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.config.settings import SettingError
from repertory.components.runtime import compilation

_FAST = '--xla_llvm_disable_expensive_passes'
_THREADS = '--xla_cpu_multi_thread_eigen'


@pytest.mark.parametrize(
  ('before', 'cores', 'after'),
  [
    (None, 2, f'{_FAST}=true {_THREADS}=false'),
    ('--other=1', 4, f'--other=1 {_FAST}=true'),
    # Flags that are set stay.
    (f'{_THREADS}=true', 2, f'{_THREADS}=true {_FAST}=true'),
    (f'{_FAST}=false', 2, f'{_FAST}=false {_THREADS}=false'),
  ],
)
def test_flags(monkeypatch, before, cores, after):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(cores)))
  # Whatever becomes of it is undone only if it was there.
  monkeypatch.setenv('XLA_FLAGS', before or '')
  if before is None:
    monkeypatch.delenv('XLA_FLAGS')
  for _ in range(2):  # Once is as good as twice.
    compilation.set_xla_flags()
    assert os.environ['XLA_FLAGS'] == after


def _in_loop(take):
  """Takes entries of an array in a loop, as learners do of minibatches."""

  def function(x, i):
    del i
    return tf.while_loop(
      lambda i, _: i < 3,
      lambda i, total: (i + 1, total + tf.reduce_sum(take(x, i))),
      (0, 0.0),
    )

  return function


_OPEN = [
  lambda x, i: x[i],
  lambda x, i: x[i : i + 2],
  lambda x, i: x[:, i],
]
_CLOSED = [
  tf.gather,
  lambda x, i: x[1:, -1],
  lambda x, i: x[tf.shape(x)[0] - 1],
  lambda x, i: tf.shape(x)[tf.rank(x) - 1],
]


class TestOpenSlices:
  def test_are_found(self):
    for function in (*_OPEN, _in_loop(_OPEN[0])):
      (name,) = self._compile(function, True).open_slices
      assert 'strided_slice' in name

  def test_others_are_not(self):
    for function in _CLOSED:
      assert self._compile(function, True).open_slices == []

  def test_do_not_matter_without_xla(self):
    assert self._compile(_OPEN[0], False).open_slices == []

  def _compile(self, function, jit_compile):
    signature = tf.TensorSpec([4, 5]), tf.TensorSpec([], tf.int32)
    return compilation.CompiledFunction(function, signature, jit_compile)


def test_in_caller_has_variables_none_and_many_outputs():
  variable = tf.Variable([1.0, 2.0])

  def add(x, y):
    variable.assign_add(x)
    return {'a': y, 'b': None, 'c': variable.read_value()}

  compiled = compilation.CompiledFunction(
    add,
    (tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int64)),
    False,
    in_caller=True,
  )
  inputs = np.array([1, 1], np.float32), np.array(7)
  compiled(*inputs)
  output = compiled.unflatten(compiled(*inputs))
  assert output['a'].numpy() == 7
  assert output['b'] is None
  assert output['c'].numpy().tolist() == [3, 4]
  assert variable.numpy().tolist() == [3, 4]


class TestEagerly:
  def test_runs_python_on_numbers_in_every_call(self):
    seen = []
    variable = tf.Variable(10.0)

    def add(x, y):
      seen.append(float(x) + int(y))  # Fails on tensors without values.
      variable.assign_add(x)
      return {'a': variable.read_value(), 'b': None, 'c': 3}

    specs = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int64)
    with compilation.eagerly(True):
      compiled = compilation.CompiledFunction(add, specs, True)
    assert not seen
    for i in range(2):
      leaves = compiled(np.float32(1), np.array(i))
      output = compiled.unflatten(leaves)
      assert output['a'].numpy() == 11 + i
      assert output['b'] is None
      assert output['c'].numpy() == 3
    assert seen == [1, 2]
    assert compiled.open_slices == []

  def test_leaves_the_switch_as_it_was(self):
    with compilation.eagerly(True):
      with compilation.eagerly(False):
        assert tf.config.functions_run_eagerly()
      with pytest.raises(ZeroDivisionError), compilation.eagerly(True):
        raise ZeroDivisionError
      assert tf.config.functions_run_eagerly()
    assert not tf.config.functions_run_eagerly()


def _print(x):
  tf.print(x)
  return x


@pytest.mark.parametrize(
  ('function', 'name'),
  [
    (lambda x: tf.cond(x > 0, lambda: _print(x), lambda: x), 'tf.print'),
    (lambda x: tf.numpy_function(abs, [x], tf.float32), 'tf.numpy_function'),
    (lambda x: tf.py_function(abs, [x], tf.float32), 'tf.py_function'),
  ],
)
def test_calls_of_python_are_refused_under_xla(function, name):
  signature = (tf.TensorSpec([], tf.float32),)
  compilation.CompiledFunction(function, signature, False)
  with pytest.raises(SettingError, match=f'^jit_compile must be .* {name},'):
    compilation.CompiledFunction(function, signature, True)
