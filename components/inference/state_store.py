"""Policy states of all environments, and batched policy calls."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, specs, types
from repertory.components.runtime import compilation, nests


class StateStore:
  """Acts for any environments, whose states are variables by environment id.

  Gathering the rows' states, the policy step and scattering the new states are
  one compiled call, for each of a few batch sizes, the *buckets*. A batch that
  does not fill its bucket is padded with rows of a spare environment.

  Attributes:
    inputs: Arrays to fill in, by bucket: ids, step types and leaves of
      observations, `[bucket, ...]`.
  """

  def __init__(
    self,
    policy: interfaces.Policy,
    observation_spec: types.Nest,
    num_environments: int,
    buckets: Sequence[int],
    *,
    jit_compile: bool = False,
    device: str | None = None,
  ):
    """Compiles the policy for each bucket.

    Args:
      policy: The policy.
      observation_spec: Nest of array specs, without a batch axis.
      num_environments: Upper bound (exclusive) of environment ids.
      buckets: Batch sizes, ascending.
      jit_compile: Whether XLA may be used, see `compilation.compile_policy`.
      device: Device of states and policy; None for TensorFlow's choice.
    """
    self._policy = policy
    self._spec = observation_spec
    self._spare = num_environments
    self.num_environments = num_environments
    self.buckets = tuple(buckets)
    initial = policy.initial_state(range(num_environments))
    with compilation.on_device(device):
      self._states = [_make_variable(leaf) for leaf in tree.flatten(initial)]
    self._structure = tree.map_structure(lambda leaf: None, initial)
    with compilation.on_device(device):
      self._calls = {
        bucket: self._compile(bucket, jit_compile) for bucket in buckets
      }
    self.inputs = {
      bucket: [
        *np.zeros([2, bucket], np.int32),
        *tree.flatten(specs.zeros(observation_spec, bucket)),
      ]
      for bucket in buckets
    }
    outputs = self._calls[buckets[0]].output_structure
    self._num_actions = len(tree.flatten(outputs[0]))
    # Packs the leaves of extras into their structure.
    self.unflatten_extras = nests.Unflattener(outputs[1])
    for bucket in buckets:  # The first call of each is slow.
      _, extras = self.act(bucket, 0)
      self._extras = [(leaf.shape[1:], leaf.dtype) for leaf in extras]

  def act(
    self, bucket: int, num_rows: int
  ) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Takes a step for the first rows of a bucket's inputs, of distinct ids.

    Returns:
      The leaves of the actions and of the extras, `[bucket, ...]`.
    """
    inputs = self.inputs[bucket]
    inputs[0][num_rows:] = self._spare
    for leaf in inputs[1:]:  # Clears rows of earlier batches.
      leaf[num_rows:] = 0
    leaves = self._calls[bucket](*inputs)
    arrays = [leaf.numpy() for leaf in leaves]
    return arrays[: self._num_actions], arrays[self._num_actions :]

  def empty_extras(self, num_rows: int) -> list[np.ndarray]:
    """Returns zeros for rows for which the policy was not run."""
    return [np.zeros([num_rows, *s], dtype) for s, dtype in self._extras]

  def _compile(self, bucket: int, jit_compile: bool):
    def act(ids, step_type, observation):
      rows = [tf.gather(variable, ids) for variable in self._states]
      output = self._policy.act(
        observation, step_type, tree.unflatten_as(self._structure, rows)
      )
      # A call that fails, say by an assertion, must not change states. Outputs
      # that only the learner needs, such as values, are left out.
      operations = tf.compat.v1.get_default_graph().get_operations()
      checks = [o for o in operations if o.op_def.is_stateful]
      with tf.control_dependencies([*checks, *tree.flatten(output)]):
        for variable, leaf in zip(self._states, tree.flatten(output.state)):
          variable.scatter_update(tf.IndexedSlices(leaf, ids))
      return output.action, output.extras

    return compilation.compile_policy(
      act,
      (
        tf.TensorSpec([bucket], tf.int32),
        tf.TensorSpec([bucket], tf.int32),
        specs.tensor_spec(self._spec, bucket),
      ),
      tree.unflatten_as(self._structure, self._states),
      jit_compile,
    )


def _make_variable(leaf: tf.Tensor) -> tf.Variable:
  """Creates a variable of a state's leaf, with a spare row at its end."""
  leaf = tf.concat([leaf, leaf[:1]], axis=0)
  return tf.Variable(leaf, trainable=False)
