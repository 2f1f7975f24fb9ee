"""Steps and batches for tests of reward models."""

import dataclasses

import numpy as np
import tensorflow as tf

from repertory.agents.reward_models import rewarding
from repertory.agents.reward_models.gail import GAILBuilder, GAILConfig
from repertory.agents.reward_models.rnd import RNDBuilder, RNDConfig
from repertory.agents.reward_models.sqil import SQILBuilder
from support.agents import agent_batches

_SMALL = {'hidden_sizes': (4,)}
# Settings for wrapping an agent that observes unnormalized states.
_PLAIN = {
  **{agent: {'n_step': 1} for agent in ('d4pg', 'dqn', 'mpo', 'sac', 'td3')},
  'r2d2': {'previous_action_and_reward': False},
}


def wrap(name, agent, **settings):
  """Wraps the builder of an agent, with one-step items and small layers."""
  wrapped = agent_batches.make_builder(agent, **_PLAIN.get(agent, {}))
  if name == 'rnd':
    config = RNDConfig(embedding_size=3, **_SMALL)
    return RNDBuilder(wrapped, dataclasses.replace(config, **settings))
  if name == 'gail':
    config = GAILConfig(**_SMALL)
    return GAILBuilder(wrapped, dataclasses.replace(config, **settings))
  return SQILBuilder(wrapped)


def make_batch(builder, spec, seed):
  """Makes a batch, with demonstrations as every other item if required."""
  sample = agent_batches.make_batch(builder, spec, seed)
  if not builder.needs_demonstrations:
    return sample
  marks = np.arange(len(sample.keys)) % 2 == 1
  return sample._replace(is_demonstration=tf.constant(marks))


def make_steps(seed, size=6):
  """Makes steps of vectors and two actions; the last one is masked."""
  random = np.random.default_rng(seed)
  return rewarding.StepBatch(
    observation=tf.constant(random.normal(3, 2, [size, 3]), tf.float32),
    action=tf.constant(random.integers(0, 2, size), tf.int32),
    next_observation=tf.constant(random.normal(3, 2, [size, 3]), tf.float32),
    reward=tf.constant(random.normal(size=size), tf.float32),
    mask=tf.constant(np.arange(size) < size - 1),
    is_demonstration=tf.constant(np.arange(size) % 3 == 1),
  )


def arrays(steps):
  """Returns the same steps as NumPy arrays, floats in double precision."""
  found = (np.asarray(leaf) for leaf in steps)
  return rewarding.StepBatch(
    *(x.astype(np.float64) if x.dtype.kind == 'f' else x for x in found)
  )
