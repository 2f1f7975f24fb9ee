"""Tests of `critics.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks, specs

VECTOR = specs.Array((3,), np.float32)


def normal(*shape, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=shape), tf.float32)


class TestCritic:
  def test_equals_numpy(self):
    critic = networks.Critic(VECTOR, (8,), 1)
    networks.create_critic_variables(critic, VECTOR, 2)
    values = {v.name: v.numpy() for v in critic.variables}
    observation, action = normal(6, 3), normal(6, 2, seed=1)
    x = np.concatenate([observation, action], axis=-1)
    x = np.maximum(x @ values['critic/mlp/linear_0/w:0'], 0)
    np.testing.assert_allclose(
      critic(observation, action), x @ values['critic/head/w:0'], atol=1e-5
    )

  def test_several_actions_are_rated_as_each_alone(self):
    critic = networks.Critic(VECTOR, (8, 4), 7, body='layer_norm_mlp')
    networks.create_critic_variables(critic, VECTOR, 2)
    observation, actions = normal(6, 3), normal(6, 5, 2, seed=1)
    expected = [critic(observation, actions[:, k]) for k in range(5)]
    np.testing.assert_allclose(
      critic(observation, actions), np.stack(expected, axis=1), atol=1e-6
    )


def make(num_critics, body, sizes=(5, 5), spec=VECTOR):
  critics = networks.Critic(spec, sizes, 2, 'auto', body, num_critics)
  networks.create_critic_variables(critics, spec, 2)
  return critics


def make_alone(critics, i, *settings):
  """Makes a copy of one of several critics."""
  critic = make(1, *settings)
  found = {v.name: v for v in critics.variables}
  assert len(found) == len(critics.variables)
  torso = 'observation_torso' + f'_{i}' * (i > 0)
  for variable in critic.variables:
    source = found[variable.name.replace('observation_torso', torso)]
    if source.shape.rank == 3:
      source = tf.reshape(source[i], variable.shape)
    variable.assign(source)
  return critic


class TestSeveralCritics:
  @pytest.mark.parametrize('body', networks.BODIES)
  def test_equal_each_alone(self, body):
    spec = {'image': specs.Array((6, 6, 1), np.float32), 'vector': VECTOR}
    critics = make(3, body, (5, 5), spec)
    for i, variable in enumerate(critics.variables):
      variable.assign(tf.abs(normal(*variable.shape, seed=i)))
    alone = [make_alone(critics, i, body, (5, 5), spec) for i in range(3)]
    observation = {'image': normal(4, 6, 6, 1), 'vector': normal(4, 3)}
    actions = normal(4, 7, 2, seed=1)
    masks, of_each = [], [[]] * 3
    if body == 'normalized_mlp':
      masks = [tf.abs(normal(4, 7, 3, 10, seed=2))]
      of_each = [[mask[:, :, None]] for mask in tf.unstack(masks[0], axis=2)]

    def check():
      outputs = critics(observation, actions, *masks)
      expected = [
        critic(observation, actions, *mask)
        for critic, mask in zip(alone, of_each)
      ]
      assert outputs.shape == [4, 7, 6]
      np.testing.assert_allclose(outputs, tf.concat(expected, -1), rtol=1e-4)

    with networks.batch_statistics():
      check()
    check()  # With the running statistics that were updated.
    first = critics.first(observation, actions)
    expected = alone[0](observation, actions)
    np.testing.assert_allclose(first, expected, rtol=1e-4)
    check()

  @pytest.mark.parametrize('body', networks.BODIES)
  def test_begin_as_each_alone(self, body):
    tf.random.set_seed(0)
    found = {v.name: v.numpy() for v in make(3, body, (300, 300)).variables}
    for variable in make(1, body, (300, 300)).variables:
      values = found[variable.name]
      if variable.shape.rank < 2:
        expected = np.broadcast_to(variable, values.shape)
        np.testing.assert_array_equal(values, expected)
        continue
      for i in range(3):
        # The deviation of 600 values or more varies by 3 %.
        ratio = np.std(values[i]) / np.std(variable)
        np.testing.assert_allclose(ratio, 1, atol=0.12)
        others = np.ravel(values[i - 1])
        assert abs(np.corrcoef(np.ravel(values[i]), others)[0, 1]) < 0.2
    if body == 'simba':
      w = found['critic/simba/linear/w:0']
      identity = np.broadcast_to(np.eye(5), (3, 5, 5))
      np.testing.assert_allclose(w @ w.swapaxes(1, 2), identity, atol=1e-5)
