"""Tests of starting from another learner's variables, for all agents."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import sac
from repertory.components import interfaces, learners
from support.agents import agent_batches
from support.system import rare_cases


class _Learner(learners.LearnerState):
  """Learns when a flag is set."""

  def __init__(self, update):
    super().__init__(update)
    self.update = update

  def step(self):
    raise NotImplementedError


def make(name, seed):
  tf.random.set_seed(seed)
  builder = agent_batches.make_builder(name)
  spec = agent_batches.AGENTS[name].spec
  learner = _Learner(builder.make_update(builder.make_network(spec), spec))
  return learner, lambda: learner.update(
    agent_batches.make_batch(builder, spec, seed)
  )


@pytest.mark.parametrize(
  'name', rare_cases.daily(sorted(agent_batches.AGENTS), ['dqn', 'mpo'])
)
def test_takes_all_that_was_learned_and_nothing_else(name):
  source, step = make(name, seed=1)
  for _ in range(3):
    step()
  saved = source.save()
  learner, _ = make(name, seed=2)
  before = learner.save()
  learned = learners.select_learned(saved)
  learner.begin_with(learned)
  after = learner.save()
  for key, array in after.items():
    expected = saved if key in learned else before
    np.testing.assert_array_equal(array, expected[key], key)
  # Trained variables and their companions.
  trained = {v.ref() for v in source.update.trainable_variables}
  named = learners.name_learned(source.update)
  assert trained <= {v.ref() for v in named.values()}
  others = {key for key in named if named[key].ref() not in trained}
  # Moments of returns and of observations.
  of_returns = {k for k in others if k.startswith('return_scale/')}
  assert bool(of_returns) == (name in ('ppo', 'vmpo'))
  of_observations = {k for k in others if 'normalizer' in k}
  assert bool(of_observations) == (name == 'ppo')
  assert others == of_returns | of_observations
  is_sac = name == 'sac'
  assert any('log_temperature' in key for key in learned) == is_sac


def test_takes_what_normalized_critics_know_of_their_inputs():
  spec = agent_batches.AGENTS['sac'].spec
  changes = {'batch_size': 4, 'critic_hidden_sizes': (4,)}
  builder = agent_batches.make_builder(
    'sac', **{**sac.PRESETS['crossq'], **changes}
  )
  source, other = (
    _Learner(builder.make_update(builder.make_network(spec), spec))
    for _ in range(2)
  )
  for seed in range(3):
    source.update(agent_batches.make_batch(builder, spec, seed))
  saved = source.save()
  learned = learners.select_learned(saved)
  other.begin_with(learned)
  found = other.save()
  for name, array in learned.items():
    np.testing.assert_array_equal(found[name], array, name)
  counts = [n for n in learned if 'critic' in n and 'num_calls' in n]
  assert counts
  for name in counts:
    assert found[name] > 0
  left = [n for n in saved if '_norm' in n and n not in learned]
  assert not [n for n in left if '/adam/' not in n and 'gradient' not in n]


class _Update(interfaces.Update):
  """Has a policy, a target of it, a count, and given learned variables."""

  def __init__(self, learned=None):
    super().__init__()
    self.policy = tf.Variable([1.0], name='w')
    self.target = tf.Variable([2.0], name='w')
    self.count = tf.Variable(3, trainable=False, name='count')
    self._learned = learned

  def __call__(self, sample):
    raise NotImplementedError

  @property
  def exports(self):
    return {'policy': [self.policy]}

  @property
  def learned(self):
    if self._learned is None:
      return super().learned
    return {self._learned: [self.count]}


def test_by_default_what_is_trainable_is_learned():
  saved = _Learner(_Update()).save()
  assert sorted(learners.select_learned(saved)) == [
    'learned/0000/w:0', 'policy/0000/w:0'
  ]  # fmt: skip
  assert 'other/0000/count:0' in saved
  named = learners.name_learned(_Update('counts'))
  assert sorted(named) == ['counts/0000/count:0', 'policy/0000/w:0']
  with pytest.raises(ValueError, match="other names than 'other'"):
    learners.name_learned(_Update('other'))
