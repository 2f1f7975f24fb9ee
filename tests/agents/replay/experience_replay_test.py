"""Tests of `agents/replay/experience_replay.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.interface import registry
from repertory.agents.replay import experience_replay
from repertory.components import adders
from repertory.components.config import settings
from support.agents import acting_policies, agent_batches, known_agents
from support.system import rare_cases

_AGENTS = known_agents.learning_from('replay')


def _config(agent='dqn', **settings):
  return registry.make_config(agent, {'prioritized': True, **settings})


# Of other annealing: of IQL's policy.
_NUM_OWN_COUNTS = {'iql': 1}


@pytest.mark.parametrize('agent', rare_cases.daily(_AGENTS, ['dqn', 'sac']))
def test_updates_weigh_by_the_learner_steps_taken(agent):
  def lose(steps_taken, **settings):
    """Returns the loss of the next learner step."""
    builder = agent_batches.make_builder(agent, prioritized=True, **settings)
    spec = agent_batches.AGENTS[agent].spec
    tf.random.set_seed(0)
    network = builder.make_network(spec)
    acting_policies.fill(network.trainable_variables)
    update = builder.make_update(network, spec)
    counts = [v for v in update.variables if 'annealing_calls' in v.name]
    has_one = 'importance_anneal_learner_steps' in settings
    assert len(counts) == _NUM_OWN_COUNTS.get(agent, 0) + has_one
    for count in counts:
      count.assign(steps_taken)
    sample = agent_batches.make_batch(builder, spec, 0)
    size = len(sample.probabilities)
    probabilities = tf.constant(np.linspace(0.01, 0.9, size))
    metrics = update(sample._replace(probabilities=probabilities)).metrics
    assert has_one == any(count == steps_taken + 1 for count in counts)
    name = 'loss' if 'loss' in metrics else 'critic_loss'
    return metrics[name].numpy()

  settings = {'importance_exponent': 0.4, 'importance_anneal_learner_steps': 3}
  found = [lose(steps, **settings) for steps in (0, 1, 3)]
  expected = [lose(0, importance_exponent=beta) for beta in (0.4, 0.6, 1.0)]
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert np.min(np.abs(np.diff(expected))) > 1e-4  # The premise.


class TestDescribeUniform:
  def test_limit_and_table_are_those_of_the_config(self):
    config = _config('sac', min_replay_size=10, samples_per_insert=256.0)
    spec = agent_batches.AGENTS['sac'].spec
    items = adders.Transitions(3, 0.9)
    described = experience_replay.describe_uniform(config, items, spec, 2)
    assert described.table.sampler == 'uniform'
    assert described.table.max_size == config.max_replay_size
    assert described.min_priority is None
    limit = described.table.rate_limit
    assert (limit.samples_per_insert, limit.min_size) == (256.0, 10)
    # Twice a batch and the items of a step, 3 of each of 2 environments.
    assert config.batch_size is not None
    assert limit.error_buffer == 2 * (config.batch_size + 256 * 2 * 3)
    described.check(2)

  def test_errors_say_what_the_config_calls_it(self):
    config = _config('sac', min_replay_size=10, max_replay_size=5)
    spec = agent_batches.AGENTS['sac'].spec
    described = experience_replay.describe_uniform(
      config, adders.Transitions(1, 0.9), spec, 1
    )
    with pytest.raises(settings.SettingError) as error:
      described.check(1)
    assert error.value.setting == 'min_replay_size'
    assert 'max_replay_size = 5' in str(error.value)
