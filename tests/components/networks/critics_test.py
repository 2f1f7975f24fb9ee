"""Tests of `critics.py`."""

import numpy as np
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


class TestCriticEnsemble:
  def test_each_rates_on_its_own(self):
    critics = [
      networks.Critic(VECTOR, (8,), 1, name=f'critic_{i}') for i in range(3)
    ]
    ensemble = networks.CriticEnsemble(critics)
    networks.create_critic_variables(ensemble, VECTOR, 2)
    observation, action = normal(6, 3), normal(6, 2, seed=1)
    values = ensemble(observation, action)
    assert values.shape == [6, 3]
    for i, critic in enumerate(critics):
      np.testing.assert_allclose(
        values[:, i : i + 1], critic(observation, action), rtol=1e-6
      )
    names = [v.name for v in ensemble.variables]
    assert len(set(names)) == 3 * 4
