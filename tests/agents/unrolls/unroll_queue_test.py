"""Tests of the queue of unrolls, by the agents that derive from it."""

import dm_env
import numpy as np
import pytest

from repertory.agents import impala, ppo, vmpo
from repertory.components import types
from support.agents import sequence_updates
from support.replay import recording_writer

AGENTS = {
  'impala': (impala.IMPALABuilder, impala.IMPALAConfig),
  'ppo': (ppo.PPOBuilder, ppo.PPOConfig),
  'vmpo': (vmpo.VMPOBuilder, vmpo.VMPOConfig),
}


def make_builder(agent, **config):
  builder_class, config_class = AGENTS[agent]
  return builder_class(config_class(hidden_sizes=(4,), **config))


def timestep(step_type):
  """A batch of one; the reward of each step is 1."""
  return dm_env.TimeStep(
    np.array([step_type], np.int32),
    np.ones([1], np.float32),
    np.ones([1], np.float32),
    np.ones([1, 3], np.float32),
  )


@pytest.mark.parametrize(
  ('agent', 'config', 'expected'),
  [
    # Two episodes of one step each: one unroll, or one of each.
    ('ppo', {}, [([1, 0, 1, 0], [1, 0, 1])]),
    ('impala', {}, [([1, 0, 1, 0], [1, 0, 1])]),
    ('impala', {'across_episodes': False}, [([1, 0, 0, 0], [1, 0, 0])] * 2),
  ],
)
def test_unrolls(agent, config, expected):
  builder = make_builder(agent, unroll_length=3, **config)
  experience = builder.experience(sequence_updates.SPEC, 1)
  writer = recording_writer.RecordingWriter(experience.table.signature)
  action = np.array([2], np.int32)
  extras = types.SequenceExtras(
    step={'sample': action, 'log_prob': np.array([-0.5], np.float32)}
  )
  adder = builder.make_adder(experience, writer, 1)
  adder.add_first(timestep(dm_env.StepType.FIRST))
  for step_type in (2, 0, 2):
    adder.add(action, timestep(step_type), extras)
  found = [(i.first.tolist(), i.mask.tolist()) for i in writer.items]
  assert found == expected
  for item in writer.items:
    np.testing.assert_allclose(item.extras['log_prob'], -0.5 * item.mask)


@pytest.mark.parametrize(
  ('agent', 'config', 'num_slots', 'num_environments', 'expected'),
  [
    # The greatest size that divides environments of an adder, and the batch.
    ('impala', {'batch_size': 32}, 16, 128, 16),
    ('impala', {'batch_size': 32}, 6, 12, 2),
    ('impala', {'batch_size': 8, 'across_episodes': False}, 8, 8, 1),
    ('ppo', {}, 8, 8, 8),
  ],
)
def test_bundles(agent, config, num_slots, num_environments, expected):
  builder = make_builder(agent, **config)
  experience = builder.experience(sequence_updates.SPEC, num_environments)
  bundled = experience.bundled(num_slots)
  assert bundled.bundle_sizes == {'replay': expected}
