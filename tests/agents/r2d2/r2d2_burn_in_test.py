"""R2D2 learns from the same action values as it acted on.

Actors have a recurrent state; items store the state at their start. Unrolled
from there, the network must return the same values at every recorded
observation as in acting, anywhere in an episode or in another item.
"""

import dm_env
import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents import r2d2
from repertory.agents.interface import builder as builder_lib
from repertory.components import actors, specs
from repertory.environments.batches import batch
from repertory.environments.wrappers import previous_action
from support.replay import recording_writer
from support.system import rare_cases

B = 3
NUM_STEPS = 60


class RandomLength(dm_env.Environment):
  """Random observations, and episodes of 1 to 13 steps.

  An observation has the slot of the environment, which is never 0.
  """

  def __init__(self, slot):
    self._random = np.random.default_rng(slot)
    self._slot = np.float32(slot)
    self._left = 0

  def reset(self):
    self._left = int(self._random.choice([1, 1, 2, 3, 5, 8, 13]))
    return dm_env.restart(self._observe())

  def step(self, action):
    if not self._left:
      return self.reset()
    self._left -= 1
    reward = np.float32(self._random.normal())
    observation = self._observe()
    if self._left:
      return dm_env.TimeStep(
        dm_env.StepType.MID, reward, np.float32(1), observation
      )
    discount = np.float32(self._random.integers(2))
    return dm_env.TimeStep(dm_env.StepType.LAST, reward, discount, observation)

  def observation_spec(self):
    return {
      'inner': specs.Array((3,), np.float32),
      'slot': specs.Array((), np.float32),
    }

  def action_spec(self):
    return specs.DiscreteArray(3, np.int32)

  def _observe(self):
    inner = self._random.normal(size=3).astype(np.float32)
    return {'inner': inner, 'slot': self._slot}


def make_environments():
  environments = [RandomLength(slot) for slot in range(1, B + 1)]
  return previous_action.PreviousActionAndReward(
    batch.EnvironmentBatch(environments)
  )


class Acting:
  """Acts into a table, and records the values of each time step."""

  def __init__(self, config, environments, network, builder):
    self.q, self.first, self.starts = [], [], []
    spec = specs.make_environment_spec(environments)
    policy = builder.make_policy(network, builder_lib.Acting(spec, B, seed=1))
    experience = builder.experience(spec, B)
    self._writer = recording_writer.RecordingWriter(
      experience.table.signature,
      # An item's version is its first time step.
      version=lambda: len(self.q) - 1,
    )
    self._adder = builder.make_adder(experience, self._writer, B)
    self._actor = actors.PolicyActor(
      policy,
      environments.observation_spec(),
      range(B),
      adder=self._adder,
      jit_compile=config.jit_compile,
    )
    self._environments = environments
    self._zeros = network.initial_state(B)
    self._state = self._zeros
    self._step = tf.function(network.step, autograph=False)

  def run(self, num_steps):
    """Restarts all episodes, and acts."""
    timestep = self._environments.reset()
    self._actor.observe_first(timestep)
    self.starts.append(len(self.q))
    for _ in range(num_steps):
      self._observe(timestep)
      action = self._actor.select_action(timestep.observation)
      timestep = self._environments.step(action)
      self._actor.observe(action, timestep)
    # What the last items end with.
    self._observe(timestep)

  def reset(self):
    self._adder.reset()

  @property
  def items(self):
    return self._writer.items

  def _observe(self, timestep):
    """Steps the network row by row, each with a state of its own."""
    first = timestep.step_type == dm_env.StepType.FIRST
    self._state = tree.map_structure(
      lambda leaf, zero: tf.where(first[:, None], zero, leaf),
      self._state,
      self._zeros,
    )
    observation = tree.map_structure(tf.constant, timestep.observation)
    q, self._state = self._step(observation, self._state)
    self.q.append(q.numpy())
    self.first.append(first)


def act(changes, runs=(NUM_STEPS,)):
  """Returns the acting, the network, the items and the config."""
  settings = {
    'hidden_sizes': (8,),
    'core_size': 6,
    'burn_in_length': 3,
    'unroll_length': 5,
    'jit_compile': False,
    **changes,
  }
  config = r2d2.R2D2Config(**settings)
  builder = r2d2.R2D2Builder(config)
  environments = make_environments()
  spec = specs.make_environment_spec(environments)
  network = builder.make_network(spec)
  random = np.random.default_rng(0)
  # Large enough for the memory to matter.
  for variable in network.trainable_variables:
    variable.assign(0.7 * random.normal(size=variable.shape))
  acting = Acting(config, environments, network, builder)
  for i, num_steps in enumerate(runs):
    if i:
      acting.reset()
    acting.run(num_steps)
  environments.close()
  return acting, network, acting.items, config


def unroll(network_unroll, item, burn_in):
  """Returns q `[T + 1, A]`, in two parts as the learner has them."""
  one = tree.map_structure(
    lambda leaf: tf.constant(leaf)[:, None], (item.observation, item.first)
  )
  state = tree.map_structure(lambda leaf: tf.constant(leaf)[None], item.state)
  parts = []
  for part in (slice(0, burn_in), slice(burn_in, None)):
    observation, first = tree.map_structure(lambda x, p=part: x[p], one)
    if first.shape[0]:
      q, state = network_unroll(observation, first, state)
      parts.append(q[:, 0])
  return np.concatenate(parts)


def places_of(item):
  """Returns slot, recorded positions and their time steps."""
  labels = item.observation['observation']['slot']
  positions = labels.nonzero()[0]
  np.testing.assert_array_equal(
    positions, np.arange(positions[0], positions[-1] + 1)
  )
  slot = int(labels[positions[0]]) - 1
  times = int(item.version) + positions - positions[0]
  return slot, positions, times


CASES = {
  'defaults': {},
  'no_burn_in': {'burn_in_length': 0, 'core': 'gru'},
  'long_burn_in': {'burn_in_length': 9, 'unroll_length': 2, 'n_step': 2},
  'across': {'across_episodes': True, 'sequence_period': 4},
  'compiled': {'jit_compile': True, 'dueling': False},
}
_DAILY = ('defaults', 'across')


class TestBurnIn:
  @pytest.mark.parametrize('case', rare_cases.daily(CASES, _DAILY))
  def test_values_are_those_acted_on(self, case):
    # After 17 time steps the actor restarts, in the middle of episodes.
    acting, network, items, config = act(CASES[case], (17, NUM_STEPS))
    network_unroll = tf.function(network.unroll, autograph=False)
    seen = {'episode': 0, 'middle': 0, 'overlap': 0, 'anew': 0, 'resets': 0}
    covered = [set() for _ in range(B)]
    for item in items:
      slot, positions, times = places_of(item)
      found = unroll(network_unroll, item, config.burn_in_length)
      # An item that starts where an episode ended has no state to start from.
      ended = (
        times[0] + 1 < len(acting.first) and (acting.first[times[0] + 1][slot])
      )
      compared = slice(int(ended), None)
      np.testing.assert_allclose(
        found[positions][compared],
        np.stack([acting.q[t][slot] for t in times])[compared],
        atol=1e-5,
        err_msg=f'slot {slot}, time steps {times}, positions {positions}',
      )
      np.testing.assert_array_equal(
        item.first[positions], [acting.first[t][slot] for t in times]
      )
      begins = bool(acting.first[times[0]][slot])
      seen['episode' if begins else 'middle'] += 1
      seen['overlap'] += len(covered[slot] & set(times)) > 1
      seen['anew'] += times[0] == acting.starts[1]
      seen['resets'] += bool(np.any(item.first[positions[1:]]))
      if positions[0]:
        assert begins
      covered[slot] |= set(times)
    self.check_seen(seen, config)

  def check_seen(self, seen, config):
    """Precondition: all kinds of items occurred."""
    assert seen['episode'] > 0
    assert seen['middle'] > 2
    if config.burn_in_length or config.period < config.unroll_length:
      assert seen['overlap'] > 5
    # With burn-in, several items may begin in the same padding.
    assert seen['anew'] >= B
    assert (seen['resets'] > 2) == config.across_episodes
