"""Policy and environment steps of a compiled program."""

from typing import Any, NamedTuple

import dm_env
import tensorflow as tf

from repertory.components import interfaces, types

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


def episodes_spec(num_steps: int, num_environments: int) -> EndedEpisodes:
  """Returns the specs of ended episodes for `num_steps` steps."""
  shape = [num_steps, num_environments]
  return EndedEpisodes(
    num_steps=tf.TensorSpec([num_steps], tf.int64),
    ended=tf.TensorSpec(shape, tf.bool),
    episode_return=tf.TensorSpec(shape, tf.float64),
    episode_length=tf.TensorSpec(shape, tf.int64),
  )


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
  """Takes one step in all environments, such as tensor environments.

  The operations are those of an actor and an `EnvironmentLoop`, in the same
  order: the step after LAST of a row ignores its action.
  """
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
