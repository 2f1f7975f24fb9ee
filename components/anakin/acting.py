"""Steps of a compiled program, and the interface of its transports."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import dm_env
import tensorflow as tf

from repertory.components import interfaces, replay, types

FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


class Carry(NamedTuple):
  """State between steps of all environments, `[N, ...]`.

  Attributes:
    environment: State of the environments.
    observation: Observation of the current time step.
    step_type: Its step type, int32 `[N]`.
    policy: State of the policy.
    episode_return: Sum of the rewards of the open episodes, float64 `[N]`.
    episode_length: Steps of the open episodes, int64 `[N]`.
  """

  environment: types.Nest
  observation: types.Nest
  step_type: tf.Tensor
  policy: types.Nest
  episode_return: tf.Tensor
  episode_length: tf.Tensor


class Step(NamedTuple):
  """Results of a step of all environments, `[N, ...]`.

  Attributes:
    observation: o_t.
    first: Whether o_t is an episode's first, bool `[N]`.
    action: a_t.
    extras: Extra outputs of the policy.
    reward: r_{t+1}, `[N]`.
    discount: d_{t+1}, `[N]`.
    happened: Whether the step was no reset between two episodes, bool `[N]`.
    ended: Whether o_{t+1} is an episode's last, bool `[N]`.
  """

  observation: types.Nest
  first: tf.Tensor
  action: types.Nest
  extras: types.Nest
  reward: tf.Tensor
  discount: tf.Tensor
  happened: tf.Tensor
  ended: tf.Tensor


class EndedEpisodes(NamedTuple):
  """Episodes that ended in a step of all environments.

  Attributes:
    num_steps: Number of environment steps, int64.
    ended: Whether an episode ended, bool `[N]`.
    episode_return: Return of that episode, float64 `[N]`.
    episode_length: Length of that episode, int64 `[N]`.
  """

  num_steps: types.Array
  ended: types.Array
  episode_return: types.Array
  episode_length: types.Array


def begin(timestep: Any, environment: types.Nest, policy: types.Nest) -> Carry:
  """Returns the state before the first step.

  Args:
    timestep: Initial time step, all FIRST, `[N]`.
    environment: State of the environments.
    policy: State of the policy.
  """
  size = timestep.step_type.shape[0]
  return Carry(
    environment,
    timestep.observation,
    timestep.step_type,
    policy,
    tf.zeros([size], tf.float64),
    tf.zeros([size], tf.int64),
  )


def step(
  policy: interfaces.Policy, environments: Any, carry: Carry
) -> tuple[Carry, Step, EndedEpisodes]:
  """Takes one step in all environments, as an `EnvironmentLoop` does."""
  output = policy.act(carry.observation, carry.step_type, carry.policy)
  state, timestep = environments.step(carry.environment, output.action)
  first = tf.equal(timestep.step_type, FIRST)  # [N]
  last = tf.equal(timestep.step_type, _LAST)  # [N]
  returns = carry.episode_return + tf.cast(timestep.reward, tf.float64)
  lengths = carry.episode_length + tf.cast(~first, tf.int64)
  happened = Step(
    observation=carry.observation,
    first=tf.equal(carry.step_type, FIRST),
    action=output.action,
    extras=output.extras,
    reward=timestep.reward,
    discount=timestep.discount,
    happened=~first,
    ended=last,
  )
  episodes = EndedEpisodes(
    tf.reduce_sum(tf.cast(~first, tf.int64)), last, returns, lengths
  )
  following = Carry(
    state,
    timestep.observation,
    timestep.step_type,
    output.state,
    tf.where(last, tf.zeros_like(returns), returns),
    tf.where(last, tf.zeros_like(lengths), lengths),
  )
  return following, happened, episodes


# Takes one step in all environments.
Act = Callable[[Carry], tuple[Carry, Step, EndedEpisodes]]


class CompiledTransport(tf.Module, abc.ABC):
  """Experience transport as tensors and variables of the program.

  Each iteration of the program calls `collect`, and then runs the updates that
  are due.

  Attributes:
    num_steps: Steps of all environments per `collect`.
    max_updates: Maximum number of updates that are due after it.
    has_priorities: Whether items have priorities.
  """

  num_steps: int
  max_updates: int
  has_priorities: bool = False

  def __init__(self, table: replay.TableSpec, batch_size: int):
    super().__init__()
    self._table, self._batch_size = table, batch_size

  @property
  def num_bytes(self) -> int:
    """Maximum memory of the stored experience, in bytes."""
    return 0

  def begin(self, carry: Carry) -> None:
    """Initializes the state before the first step; called once, not traced."""

  @abc.abstractmethod
  def collect(
    self,
    act: Act,
    carry: Carry,
    version: tf.Tensor,
    max_priority: tf.Tensor,
  ) -> tuple[Carry, types.Nest, EndedEpisodes]:
    """Takes environment steps, and records them.

    Args:
      act: Takes one step.
      carry: State before the first step.
      version: Learner steps of the acting variables, int64.
      max_priority: Largest priority so far, float64.

    Returns:
      The state after the last step; the data that `sample` needs until the next
      call; and the episodes, `[num_steps, ...]`.
    """

  @abc.abstractmethod
  def is_due(self, held: types.Nest, num_updates: tf.Tensor) -> tf.Tensor:
    """Returns whether an update is due, after `num_updates` since `collect`."""

  @abc.abstractmethod
  def sample(self, held: types.Nest, num_updates: tf.Tensor) -> types.Sample:
    """Returns the batch of the next update; the arguments are `is_due`'s."""

  def set_priorities(
    self, sample: types.Sample, priorities: tf.Tensor, finite: tf.Tensor
  ) -> None:
    """Sets new priorities `[B]` of a batch, if the update was finite."""
    raise NotImplementedError

  @property
  def sample_spec(self) -> types.Sample:
    """Specs of a batch, as `tf.TensorSpec`s."""
    return replay.sample_spec(self._table.signature, self._batch_size)

  @abc.abstractmethod
  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name."""

  @property
  def saved(self) -> Mapping[str, tf.Variable]:
    """The complete state, by name in checkpoints."""
    return {f'{i:04d}': v for i, v in enumerate(self.variables)}
