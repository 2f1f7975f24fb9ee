"""Checks that the network fits into memory, before it is made."""

import contextlib
import dataclasses
from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import specs
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.platform import machine_memory


def check(
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  learns: bool = True,
) -> None:
  """Raises if the network would not fit into memory, without making it.

  Args:
    learns: Whether it is trained, which also takes memory for target networks
      and optimizer state, for gradients, and for a copy of all variables to
      undo an update.

  Raises:
    SettingError: Naming the setting to change, if one can be found.
  """
  variables, trained = _list_variables(experiment, spec, learns)
  parts = {'variables': _count_bytes(variables)}
  if learns:
    parts['gradients'] = _count_bytes(trained)
    parts['a copy to undo an update'] = parts['variables']
  needed, total = sum(parts.values()), machine_memory.total_bytes()
  if needed <= total:
    return
  largest = max(variables, key=lambda v: v.shape.num_elements())
  in_words = machine_memory.gigabytes
  sizes = ', '.join(
    f'{in_words(size)} of {name}' for name, size in parts.items()
  )
  text = (
    f'The network takes {in_words(needed)} ({sizes}) of the {in_words(total)} '
    f'of memory. Its largest variable is {largest.name} of shape '
    f'{largest.shape.as_list()}.'
  )
  setting, value = _find_setting(experiment.builder.config, largest.shape)
  if setting:
    text = (
      f'must be lower, or the machine must have more memory; got {value}. '
      f'{text}'
    )
  raise SettingError(setting, text)


def _list_variables(
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  learns: bool,
) -> tuple[Sequence[tf.Variable], Sequence[tf.Variable]]:
  """Returns all variables and the trainable ones, without values.

  Variables made in a graph take no memory. The lists are empty if the network
  cannot be built there, such as one that reads its values.
  """
  builder = experiment.builder
  snt.Module()  # Lets Sonnet check for TensorFlow 2 outside of the graph.
  with contextlib.suppress(Exception), tf.Graph().as_default():
    network = builder.make_network(spec)
    update = builder.make_update(network, spec) if learns else network
    return update.variables, network.trainable_variables
  return [], []


def _count_bytes(variables: Sequence[tf.Variable]) -> int:
  return sum(v.shape.num_elements() * v.dtype.size for v in variables)


def _find_setting(config, shape: tf.TensorShape) -> tuple[str, object]:
  """Returns a setting that equals one of the sizes, and its value; else ''."""
  values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
  for size in sorted(shape.as_list(), reverse=True):
    for name, value in values.items():
      if size in (value if isinstance(value, tuple) else [value]):
        return name, value
  return '', None
