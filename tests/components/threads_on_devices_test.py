"""Tests of threads that compute on one device, beside other devices.

Their arguments must not be confused. Logical devices of the CPU stand in for
real ones, and must be made before TensorFlow's first operation.
"""

import subprocess
import sys

import pytest

_DEVICES = """
import sys
import threading

import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices('CPU')
tf.config.set_logical_device_configuration(
  cpu, [tf.config.LogicalDeviceConfiguration()] * 3
)

from repertory.components import variables
from repertory.components.runtime import compilation

problems = []


def repeat(number, step):
  try:
    for i in range(2_000):
      step(i)
  except Exception as error:
    problems.append(f'{number}: {error}')
"""

_FUNCTIONS = """
def compute(number):
  shape = 2 + number, 3 + number
  with compilation.on_device('CPU:1'):
    variable = tf.Variable(np.full(shape, number, np.float32))
    function = compilation.CompiledFunction(
      lambda x: [x + variable, tf.reduce_sum(x)],
      (tf.TensorSpec(shape, tf.float32),),
      False,
      in_caller=True,
    )

  def step(i):
    x = np.full(shape, 1_000.0 * number + i, np.float32)
    total, _ = function(x)
    np.testing.assert_array_equal(total.numpy(), x + number)

  repeat(number, step)
"""

_VARIABLES = """
shapes = [(number + 2, number + 3) for number in range(6)]
publisher = variables.Publisher(
  [tf.Variable(tf.fill(shape, 1.0)) for shape in shapes]
)


def compute(number):
  with tf.device('CPU:1'):
    mine = [tf.Variable(tf.fill(shape, 0.0)) for shape in shapes]
  followed = variables.LocalVariableClient(publisher, mine)

  def step(i):
    if number == 0:
      publisher.publish(i, 1.0)
    followed.update()
    for variable, shape in zip(mine, shapes):
      with tf.device('CPU:1'):
        found = variable.numpy().shape
      assert found == shape, found

  repeat(number, step)
"""

_RUN = """
threads = [threading.Thread(target=compute, args=[i]) for i in range(3)]
for thread in threads:
  thread.start()
for thread in threads:
  thread.join(200)
sys.exit('; '.join(problems) or None)
"""


@pytest.mark.chaos
@pytest.mark.parametrize('work', [_FUNCTIONS, _VARIABLES])
def test_nothing_is_mixed_up(work):
  ended = subprocess.run(
    [sys.executable, '-c', _DEVICES + work + _RUN],
    check=False,
    capture_output=True,
    text=True,
    timeout=250,
  )
  assert ended.returncode == 0, ended.stderr
