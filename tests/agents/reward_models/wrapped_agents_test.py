"""Tests of agents with reward models."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents import dqn
from repertory.agents.interface import conformance as agents_conformance
from repertory.agents.reward_models import rewarding, rnd, sqil
from repertory.components import interfaces
from repertory.components.config import settings
from support.agents import (
  acting_policies,
  agent_batches,
  known_agents,
  started_updates,
  wrapped_batches,
)
from support.system import rare_cases

_REPLAYING = known_agents.learning_from('replay')
_CASES = {
  f'{name}-{agent}': (name, agent)
  for name, agents in {
    'rnd': [name for name in known_agents.NAMES if name != 'bc'],
    'sqil': _REPLAYING,
    'gail': _REPLAYING,
  }.items()
  for agent in agents
}
_DAILY = ('rnd-dqn', 'sqil-dqn', 'gail-dqn')


class _Wrapped:
  """Parameterizes the tests by reward models and agents."""

  @pytest.fixture(autouse=True, params=rare_cases.daily(sorted(_CASES), _DAILY))
  def _pair(self, request):
    name, agent = _CASES[request.param]
    self.builder = wrapped_batches.wrap(name, agent)
    self.spec = agent_batches.AGENTS[agent].spec

  def make_network(self):
    network = self.builder.make_network(self.spec)
    acting_policies.fill(network.trainable_variables)
    return network


class TestUpdates(_Wrapped, started_updates.StartedUpdates):
  num_updates = 1

  def make_update(self, network):
    tf.random.set_seed(0)
    return self.builder.make_update(network, self.spec)

  def make_sample(self, seed):
    return wrapped_batches.make_batch(self.builder, self.spec, seed)


class TestBuilders(_Wrapped, agents_conformance.BuilderConformance):
  def make_builder(self):
    return self.builder

  def make_spec(self):
    return self.spec

  def test_parts_fit_together(self):
    if self.builder.needs_demonstrations:
      pytest.skip('Batches without demonstrations are none of its.')
    super().test_parts_fit_together()


class _Recording(interfaces.Update):
  """Records its sample."""

  def __init__(self):
    super().__init__()
    self.weight = tf.Variable(1.0)

  @property
  def exports(self):
    return {'policy': [self.weight]}

  def __call__(self, sample):
    self.sample = sample
    return interfaces.UpdateResult({'own': tf.constant(3.0)}, sample.keys)


class _Counting(rewarding.Rewards):
  """Rewards steps with their indices, and counts them."""

  def __init__(self):
    super().__init__()
    self.total = tf.Variable(0)

  def __call__(self, steps):
    self.steps = steps
    self.total.assign_add(steps.mask.shape[0])
    return tf.range(steps.mask.shape[0], dtype=tf.float32), {
      'new': tf.constant(4.0)
    }


def _batch(agent):
  builder = wrapped_batches.wrap('sqil', agent)
  spec = agent_batches.AGENTS[agent].spec
  return wrapped_batches.make_batch(builder, spec, 0)


class TestRewardingUpdate:
  def test_gives_transitions_their_rewards(self):
    wrapped, rewards = _Recording(), _Counting()
    update = rewarding.RewardingUpdate(wrapped, rewards)
    sample = _batch('dqn')
    result = update(sample)
    np.testing.assert_array_equal(wrapped.sample.data.reward, [0, 1, 2, 3])
    others = (
      sample.data._replace(reward=0),
      wrapped.sample.data._replace(reward=0),
    )
    tree.map_structure(np.testing.assert_array_equal, *others)
    assert {k: float(v) for k, v in result.metrics.items()} == {
      'own': 3, 'new': 4
    }  # fmt: skip
    assert result.priorities is sample.keys
    np.testing.assert_array_equal(
      rewards.steps.next_observation, sample.data.next_observation
    )
    np.testing.assert_array_equal(
      rewards.steps.is_demonstration, [False, True, False, True]
    )
    assert update.exports == wrapped.exports
    assert {v.ref() for v in update.variables} == {
      v.ref() for v in (wrapped.weight, rewards.total)
    }
    # Another run may begin with the agent, wrapped or not.
    assert update.learned == wrapped.learned

  def test_gives_each_step_of_sequences_its_reward(self):
    wrapped, rewards = _Recording(), _Counting()
    sample = _batch('r2d2')
    mask = np.array(sample.data.mask)
    mask[1, -1] = False
    observation = sample.data.observation.numpy()
    shown = {'observation': observation, 'previous_reward': observation + 1}
    sample = sample._replace(
      data=sample.data._replace(mask=tf.constant(mask), observation=shown)
    )
    rewarding.RewardingUpdate(wrapped, rewards, True)(sample)
    size, length = mask.shape
    expected = np.arange(size * length).reshape(mask.shape) * mask
    np.testing.assert_array_equal(wrapped.sample.data.reward, expected)
    # Without previous action and reward.
    steps = rewards.steps
    np.testing.assert_array_equal(
      steps.observation, observation[:, :-1].reshape(-1, 3)
    )
    np.testing.assert_array_equal(
      steps.next_observation, observation[:, 1:].reshape(-1, 3)
    )
    np.testing.assert_array_equal(steps.mask, mask.ravel())
    np.testing.assert_array_equal(
      steps.is_demonstration, np.repeat(np.arange(size) % 2 == 1, length)
    )


class TestSQIL:
  @pytest.mark.parametrize(
    ('rewards', 'expected'),
    [
      ({}, (0, 1)),
      ({'demonstration_reward': 2.0, 'own_reward': -0.5}, (-0.5, 2)),
    ],
  )
  def test_rewards_are_of_who_took_the_steps(self, rewards, expected):
    steps = wrapped_batches.make_steps(0)
    builder = sqil.SQILBuilder(
      dqn.DQNBuilder(dqn.DQNConfig(n_step=1)), sqil.SQILConfig(**rewards)
    )
    found, _ = builder.make_rewards(agent_batches.AGENTS['dqn'].spec)(steps)
    own, data = expected
    np.testing.assert_array_equal(found, [own, data, own, own, data, own])


class _WithALearner(dqn.DQNBuilder):
  def make_learner(self, *arguments, **settings):
    return super().make_learner(*arguments, **settings)


class TestWrapping:
  def test_refuses_sums_of_rewards(self):
    builder = rnd.RNDBuilder(dqn.DQNBuilder())
    with pytest.raises(
      settings.SettingError, match=r"^n_step must be 1 with 'r"
    ):
      builder.experience(agent_batches.AGENTS['dqn'].spec, 1)

  @pytest.mark.parametrize(
    ('wrapped', 'why'),
    [
      (_WithALearner(), 'overrides make_learner'),
      (sqil.SQILBuilder(dqn.DQNBuilder()), "one.*'rnd' around 'sqil'"),
    ],
  )
  def test_refuses_what_would_not_be_called(self, wrapped, why):
    with pytest.raises(
      settings.SettingError, match=f'^reward_model must be .*{why}'
    ):
      rnd.RNDBuilder(wrapped)

  def test_name_and_settings(self):
    builder = sqil.SQILBuilder(dqn.DQNBuilder())
    assert builder.config == dqn.DQNConfig()
    assert builder.reward_model_identity == {
      'reward_model': 'sqil',
      'reward_model.demonstration_reward': 1.0,
      'reward_model.own_reward': 0.0,
    }
    assert dqn.DQNBuilder().reward_model_identity == {}
