"""The two TensorFlow programs that make an agent."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import tensorflow as tf
import tree

from repertory.components import types


class PolicyOutput(NamedTuple):
  """What a policy says about a batch of observations.

  Attributes:
    action: `[B, ...]`, of the environment's action spec.
    extras: Nest `[B, ...]` that replay needs of the acting moment, `()` if
      nothing.
    state: The policy's state after this step, `[B, ...]`.
  """

  action: types.Nest
  extras: types.Nest
  state: types.Nest


class Policy(tf.Module, abc.ABC):
  """Chooses actions: a batched TensorFlow program without side effects.

  All that changes from step to step (recurrent state, random numbers) is in
  `state`, whose every leaf has a leading `[B]`. Row b of the output depends on
  row b of the inputs alone, so rows may be batched with any others.
  """

  @abc.abstractmethod
  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    """Returns the state before the first step.

    Args:
      environment_ids: One for each row, in [0, num_environments). What belongs
        to an environment (its ε, its random numbers) follows from its id, so
        that it is the same wherever the environment is acted for.

    Returns:
      The state, `[len(environment_ids), ...]`.
    """

  @abc.abstractmethod
  def step(self, observation: types.Nest, state: types.Nest) -> PolicyOutput:
    """Maps observations `[B, ...]` and state `[B, ...]` to actions."""

  def act(
    self, observation: types.Nest, step_type: tf.Tensor, state: types.Nest
  ) -> PolicyOutput:
    """Takes a step in every row, heeding where episodes start and end.

    Args:
      observation: `[B, ...]`.
      step_type: The timestep's, int32 `[B]`. A row at LAST needs
        no action: what it gets means nothing, and its state stays as it is.
      state: `[B, ...]`.
    """
    first = tf.equal(step_type, int(dm_env.StepType.FIRST))
    ended = tf.equal(step_type, int(dm_env.StepType.LAST))
    state = self.reset_state(state, first)
    output = self.step(observation, state)

    def keep_ended(before, after):
      if before is after:
        return after
      has_ended, ones = ended, [1] * (len(after.shape) - 1)
      if ones:
        has_ended = tf.reshape(ended, [-1, *ones])
      return tf.where(has_ended, before, after)

    return output._replace(
      state=tree.map_structure(keep_ended, state, output.state)
    )

  def reset_state(self, state: types.Nest, first: tf.Tensor) -> types.Nest:
    """Forgets the past of the rows where an episode starts.

    Args:
      state: The policy's state, `[B, ...]`.
      first: Bool `[B]`, true where the observation to come is an episode's
        first.

    Returns:
      The state to act with. A policy without memory returns `state` itself;
      random numbers go on across episodes.
    """
    del first
    return state

  def describe(self, environment_ids: Sequence[int]) -> Mapping[str, Any]:
    """Returns plain values that tell how it acts there, for the log."""
    del environment_ids
    return {}


class BellmanUpdater(tf.Module, abc.ABC):
  """Computes targets of replayed items: a TensorFlow program beside the update.

  Where there is one, the learner gets items that are finished, see
  `Experience.labeled`. It owns networks of its own, which follow those of the
  update, and nothing else that changes.
  """

  @property
  @abc.abstractmethod
  def followed(self) -> Mapping[str, Sequence[tf.Variable]]:
    """Its variables, which take the values of what the update exports.

    By the name of the export, in the same order.
    """

  @abc.abstractmethod
  def __call__(
    self, sample: types.Sample, seed: tf.Tensor
  ) -> tuple[types.Nest, types.Nest]:
    """Returns data and target of `types.Labeled`, `[B, ...]` both.

    Args:
      sample: A batch of replay items `[B]`.
      seed: For stateless random operations, int32 `[2]`; another one in each
        call.
    """


class UpdateResult(NamedTuple):
  """What an update reports.

  Attributes:
    metrics: Scalars by name.
    priorities: New priorities of the sampled items, `[B]`, or None where the
      table has none.
  """

  metrics: Mapping[str, tf.Tensor]
  priorities: tf.Tensor | None = None


class Update(tf.Module, abc.ABC):
  """Learns from a batch: a TensorFlow program that owns what it changes.

  It holds the online and target variables and the optimizer as attributes, so
  that `variables` is all there is to save.
  """

  @abc.abstractmethod
  def __call__(self, sample: types.Sample) -> UpdateResult:
    """Updates the variables from `sample`, a batch of replay items `[B]`."""

  @property
  @abc.abstractmethod
  def exports(self) -> Mapping[str, Sequence[tf.Variable]]:
    """The variables that others may ask for, by name; always has 'policy'."""

  @property
  def learned(self) -> Mapping[str, Sequence[tf.Variable]]:
    """The variables that another run may begin with, by name.

    Networks, their targets, and numbers that mean nothing without them; but not
    what belongs to a run: moments of an optimizer, counts, seeds. By default
    what is exported, and as 'learned' all other trainable variables.
    """
    exported = {v.ref() for vs in self.exports.values() for v in vs}
    others = [v for v in self.trainable_variables if v.ref() not in exported]
    return {**self.exports, 'learned': others}
