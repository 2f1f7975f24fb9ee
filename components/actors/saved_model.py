"""Export of policies as self-contained TensorFlow SavedModels."""

import functools
import os
import re
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from tensorflow.python.ops import op_selector

from repertory.components import interfaces, specs, types

# Rows in a model's initial state, if they differ, as by random streams.
MAX_DIFFERING_ROWS = 1024


def export(
  policy: interfaces.Policy,
  observation_spec: types.Nest,
  observation_names: Sequence[str],
  initial_leaves: Callable[[int], Sequence[np.ndarray]],
  path: str,
) -> None:
  """Exports a policy.

  The signature 'serving_default' of the model maps observation and state to
  action and next state, `[B, ...]` each, for any B. Leaves of nests are named
  by their paths: 'observation_camera', 'action', 'state_core_hidden'. Leaves of
  the state that cannot affect an action are left out. If any remain, the
  signature 'initial_state' maps 'batch_size' to them.

  Args:
    policy: The policy.
    observation_spec: Nest of array specs, without a batch axis.
    observation_names: Names of its leaves, in the order of `tree`.
    initial_leaves: Maps a number B to the leaves of the first rows' initial
      states, `[B, ...]` each.
    path: Path of the folder, which must not exist or be empty.

  Raises:
    OSError: If it cannot be written; no partial folder is left.
  """
  observation = specs.tensor_spec(observation_spec, None)
  observations = dict(zip(observation_names, tree.flatten(observation)))
  state = tree.map_structure(
    lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype),
    policy.initial_state(range(1)),
  )
  states = dict(zip(name_leaves(state, 'state'), tree.flatten(state)))

  step = functools.partial(
    _step_by_name,
    policy,
    (observation, state),
    (list(observations), list(states)),
  )
  kept = _find_needed(step, {**observations, **states})

  def act(**tensors):
    size = tf.shape(tensors[observation_names[0]])[:1]
    for name in states.keys() - kept:
      shape = tf.concat([size, states[name].shape[1:]], 0)
      tensors[name] = tf.zeros(shape, states[name].dtype)
    actions, after = step(tensors)
    return {**actions, **{name: after[name] for name in kept}}

  arguments = {**observations, **{name: states[name] for name in sorted(kept)}}
  signatures = {'serving_default': _trace(act, arguments)}
  if kept:
    rows = dict(zip(states, initial_leaves(MAX_DIFFERING_ROWS)))
    signatures['initial_state'] = _trace(
      lambda batch_size: {n: _first_rows(rows[n], batch_size) for n in kept},
      {'batch_size': tf.TensorSpec([], tf.int32)},
    )
  _write(signatures, path)


def _step_by_name(
  policy: interfaces.Policy,
  nests: Sequence[types.Nest],
  names: Sequence[list[str]],
  tensors: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Maps observation and state by name to action and next state by name."""
  inputs = (
    tree.unflatten_as(nest, [tensors[name] for name in its_names])
    for nest, its_names in zip(nests, names)
  )
  output = policy.step(*inputs)
  actions = name_leaves(output.action, 'action')
  return (
    dict(zip(actions, tree.flatten(output.action))),
    dict(zip(names[1], tree.flatten(output.state))),
  )


def name_leaves(nest: types.Nest, *root: str) -> list[str]:
  """Returns the names of a nest's leaves, made of their paths."""
  names = [
    re.sub(r'\W', '_', '_'.join(map(str, (*root, *path))), flags=re.ASCII)
    for path, _ in tree.flatten_with_path(nest)
  ]
  if len(set(names)) < len(names):
    raise ValueError(
      'The leaves of inputs and outputs of a model must have paths that differ '
      f'in letters, digits and underscores, got {names}.'
    )
  return names


def _find_needed(
  step: Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]],
  arguments: dict[str, tf.TensorSpec],
) -> set[str]:
  """Returns the names of state leaves that may affect an action."""
  needed: set[str] = set()

  def find(**tensors):
    actions, states = step(tensors)
    names = {tensors[name].op: name for name in states}
    sought = list(actions.values())
    while sought:
      sources = op_selector.get_backward_walk_ops(
        [tensor.op for tensor in sought], control_inputs=True
      )
      found = {names[op] for op in sources if op in names}
      sought = [states[name] for name in found - needed]
      needed.update(found)
    return actions

  _trace(find, arguments)
  return needed


def _first_rows(table: np.ndarray, batch_size: tf.Tensor) -> tf.Tensor:
  if (table == table[:1]).all():
    return tf.repeat(tf.constant(table[:1]), batch_size, axis=0)
  tf.debugging.assert_less_equal(
    batch_size,
    len(table),
    f'batch_size must be at most {len(table)} for this policy.',
  )
  return tf.constant(table)[:batch_size]


def _trace(
  function: Callable[..., Any], arguments: dict[str, tf.TensorSpec]
) -> Any:
  """Traces a function of named tensors."""
  named = {
    name: tf.TensorSpec(spec.shape, spec.dtype, name)
    for name, spec in arguments.items()
  }
  traced = tf.function(function, autograph=False)
  return traced.get_concrete_function(**named)


def _write(signatures: dict[str, Any], path: str) -> None:
  """Writes a model's folder atomically."""
  module: Any = tf.Module()  # Variables must belong to a module.
  module.held = list(signatures['serving_default'].graph.variables)
  path = os.path.abspath(path)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  temporary = f'{path}.writing-{os.getpid()}'
  try:
    tf.saved_model.save(module, temporary, signatures)
    os.rename(temporary, path)  # Replaces an empty folder.
  except tf.errors.OpError as error:  # Errors of TensorFlow's file system.
    raise OSError(error.message) from error
  finally:
    shutil.rmtree(temporary, ignore_errors=True)
