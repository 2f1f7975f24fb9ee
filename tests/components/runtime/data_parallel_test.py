"""Tests of `components/runtime/data_parallel.py`."""

import collections
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components.runtime import data_parallel
from support.agents import known_agents

# Logical devices must be made before TensorFlow's first operation.
_SCRIPT = """
import sys

import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices('CPU')
tf.config.set_logical_device_configuration(
  cpu, [tf.config.LogicalDeviceConfiguration()] * 3
)
tf.debugging.set_log_device_placement(True)

from support.agents import agent_batches
from repertory.components import learners
from repertory.components.runtime import data_parallel


class Log(list):
  def write(self, row):
    self.append({key: np.asarray(value) for key, value in row.items()})


def learn(name, core, devices):
  settings = {'core': core, 'core_size': 3} if core != 'none' else {}
  spec = agent_batches.AGENTS[name].spec
  builder = agent_batches.make_builder(name, **settings)
  batches = [agent_batches.make_batch(builder, spec, seed) for seed in range(3)]
  tf.random.set_seed(1)
  log = Log()
  with data_parallel.over_devices(devices):
    learner = learners.GradientLearner(
      builder.make_update(builder.make_network(spec), spec),
      iter(batches),
      agent_batches.spec_of(batches[0]),
      logger=log,
    )
  print('BEGINS', name, core, file=sys.stderr, flush=True)
  for _ in batches:
    learner.step()
  print('ENDS', file=sys.stderr, flush=True)
  return [learner.save(), *log]


for case in sys.argv[1:]:
  one = learn(*case.split('-'), [])
  several = learn(*case.split('-'), ['CPU:1', 'CPU:2', 'CPU:0'])
  for expected, found in zip(one, several, strict=True):
    for key, value in expected.items():
      np.testing.assert_allclose(
        found[key], value, rtol=1e-4, atol=1e-5, err_msg=f'{case}: {key}'
      )
"""
_EACH = [
  f'{name}-{known_agents.AGENTS[name].core or "none"}'
  for name in known_agents.NAMES
]


@pytest.mark.chaos
def test_agents_learn_the_same_on_several_devices():
  ended = subprocess.run(
    [sys.executable, '-c', _SCRIPT, *_EACH],
    env={'PYTHONPATH': ':'.join(sys.path)},
    capture_output=True,
    text=True,
    timeout=400,
    check=False,
  )
  assert ended.returncode == 0, ended.stderr[-3000:]
  parts = re.findall('BEGINS (.*?)\n(.*?)ENDS', ended.stderr, re.DOTALL)
  # Devices of the matrix products.
  counts = [
    collections.Counter(re.findall(r'\(MatMul\): .*device:(CPU:\d)', log))
    for _, log in parts
  ]
  assert len(parts) == 2 * len(_EACH)
  for (case, _), one, three in zip(parts[::2], counts[::2], counts[1::2]):
    assert set(one) == {'CPU:0'}, case
    # Forward and backward passes run on each device.
    assert set(three) == {'CPU:0', 'CPU:1', 'CPU:2'}, case
    assert len(set(three.values())) == 1, (case, three)
    assert three['CPU:0'] >= one['CPU:0'], case


class _Network(tf.Module):
  """Maps time-major inputs and a state to outputs and the next state."""

  def __init__(self):
    super().__init__()
    self.w = tf.Variable([[1.0, -2.0], [0.5, 3.0]])
    self.scale = tf.Variable(0.7)
    self.unused = tf.Variable(1.0)

  def __call__(self, inputs, state):
    kind = tf.cast(inputs['kind'], tf.float32)[..., None]  # [T, B, 1]
    mixed = tf.einsum('tbi,ij->tbj', inputs['x'], self.w) * kind
    total = tf.reduce_sum(mixed, axis=0) * self.scale + state  # [B, 2]
    return mixed**2, {'total': tf.tanh(total)}


def _run(num_devices, num_rows, dynamic=False):
  """Returns outputs and gradients of an arbitrary function."""
  network = _Network()
  function = data_parallel.split_rows(network, (1, 0), (1, 0))
  shape = [3, None if dynamic else num_rows]
  random = np.random.default_rng(0)
  numbers = random.normal(size=[3, num_rows, 2]).astype(np.float32)
  kinds = random.integers(0, 3, [3, num_rows])
  state = random.normal(size=[num_rows, 2]).astype(np.float32)

  @tf.function(
    input_signature=[
      {
        'kind': tf.TensorSpec(shape, tf.int64),
        'x': tf.TensorSpec([*shape, 2], tf.float32),
      },
      tf.TensorSpec([shape[1], 2], tf.float32),
    ],
    autograph=False,
  )
  def call(inputs, state):
    variables = [network.w, network.scale, network.unused]
    with tf.GradientTape() as tape:
      tape.watch([inputs['x'], state])
      # Twice, and in two parts of a loss.
      outputs, after = function(inputs, state)
      again, _ = function(inputs, after['total'])
      loss = tf.reduce_sum(outputs * again) + tf.reduce_sum(after['total'] ** 3)
    return (
      outputs,
      after,
      tape.gradient(
        loss, [inputs['x'], state, *variables], unconnected_gradients='zero'
      ),
    )

  with data_parallel.over_devices(['CPU:0'] * num_devices):
    return call(
      {'kind': tf.constant(kinds), 'x': tf.constant(numbers)},
      tf.constant(state),
    )


@pytest.mark.parametrize('num_rows', [1, 7])
def test_outputs_and_gradients_are_those_of_one_device(num_rows):
  whole = _run(1, num_rows)
  assert np.abs(whole[2][2]).min() > 0.01  # Of w.
  for num_devices in (2, 3):
    divided = _run(num_devices, num_rows)
    tree.map_structure(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5),
      divided,
      whole,
    )


def test_unknown_number_of_rows_is_refused():
  _run(1, 3, dynamic=True)
  with pytest.raises(ValueError, match=r"known .* over \['CPU:0', 'CPU:0'\]"):
    _run(2, 3, dynamic=True)


def test_rows_are_divided_inside_the_scope_alone():
  seen = []

  def call():
    data_parallel.split_rows(lambda x: seen.append(x.shape[0]) or x)(
      tf.zeros([5])
    )
    sizes = seen[:]
    seen.clear()
    return sizes

  assert call() == [5]
  with (
    pytest.raises(ValueError, match=r"split over .* \['CPU:0', 'CPU:1'\]"),
    data_parallel.over_devices(['CPU:0', 'CPU:1']),
  ):
    pass
  with data_parallel.over_devices(['CPU:0', 'CPU:0']):
    assert call() == [3, 2]
    with data_parallel.over_devices(['CPU:0']):
      assert call() == [5]
    assert call() == [3, 2]
  assert call() == [5]
