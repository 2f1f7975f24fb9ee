"""Tests of `agents/r2d2/learning.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import r2d2
from repertory.components import learners
from support.agents import acting_policies, sequence_updates

SPEC = sequence_updates.SPEC
B, T, BURN_IN = 3, 4, 2
CONFIG = r2d2.R2D2Config(
  hidden_sizes=(4,),
  core='gru',
  core_size=4,
  burn_in_length=BURN_IN,
  unroll_length=T,
  n_step=2,
  discount=0.8,
  rescale_epsilon=0.1,
  max_gradient_norm=0.5,
  target_update_period=2,
  jit_compile=False,
)
# Padded in front; at its end; over an episode's end.
MASK = np.array(
  [[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 1]], np.bool_
)
FIRST = np.zeros([B, BURN_IN + T + 1], np.bool_)
FIRST[[0, 2], [2, 4]] = True


def make_sample(network):
  random = np.random.default_rng(3)
  shape, padding = MASK.shape, sequence_updates.PADDING
  observation = random.normal(size=[B, shape[1] + 1, 3])
  observation[0, :2] += padding
  observation[1, 5:] += padding
  batch = {
    'observation': observation,
    'reward': np.where(MASK, 3 * random.normal(size=shape), padding),
    'discount': np.where(MASK, random.choice([0.5, 1.0], shape), padding),
  }
  action = random.integers(3, size=shape)
  return sequence_updates.to_sample(
    batch,
    action.astype(np.int32),
    sequence_updates.random_state(network, random),
    first=FIRST,
    mask=MASK,
    probabilities=[0.01, 0.02, 0.05],
  )


def make(config=CONFIG):
  builder = r2d2.R2D2Builder(config)
  update = builder.make_update(builder.make_network(SPEC), SPEC)
  networks = update._network, update._target_network
  for seed, network in enumerate(networks):
    acting_policies.fill(network.trainable_variables, seed)
  return *networks, update


def h(x, epsilon):
  return np.sign(x) * (np.sqrt(abs(x) + 1) - 1) + epsilon * x


def inverse_h(x, epsilon):
  root = (np.sqrt(1 + 4 * epsilon * (abs(x) + 1 + epsilon)) - 1) / (2 * epsilon)
  return np.sign(x) * (root**2 - 1)


def twin(online, target, sample, config):
  """Loss and priorities from the networks' outputs, step by step."""
  data = learners.time_major(sample.data)
  q, q_target = (
    network.unroll(data.observation, data.first, data.state)[0].numpy()
    for network in (online, target)
  )
  epsilon = config.rescale_epsilon
  weights = (50 * np.array([0.01, 0.02, 0.05])) ** -config.importance_exponent
  weights /= weights.max()
  loss, priorities = 0.0, []
  for b in range(B):
    deltas = []
    for t in range(BURN_IN, BURN_IN + T):
      if not MASK[b, t]:
        continue
      value, factor, s = 0.0, 1.0, t
      while s < min(t + config.n_step, BURN_IN + T) and MASK[b, s]:
        value += factor * float(data.reward[s, b])
        factor *= config.discount * float(data.discount[s, b])
        s += 1
      bootstrap = float(q_target[s, b, np.argmax(q[s, b])])
      if epsilon is None:
        goal = value + factor * bootstrap
      else:
        goal = h(value + factor * inverse_h(bootstrap, epsilon), epsilon)
      deltas.append(goal - q[t, b, data.action[t, b]])
    sizes, share = np.abs(deltas), config.max_priority_share
    priorities.append(share * sizes.max() + (1 - share) * sizes.mean())
    loss += weights[b] * np.sum(0.5 * sizes**2) / B
  return loss, priorities


def arrays(network):
  return [variable.numpy() for variable in network.trainable_variables]


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {'n_step': T},
    {'rescale_epsilon': None},
  ],
)
def test_equals_the_twin(changes):
  config = dataclasses.replace(CONFIG, **changes)
  online, target, update = make(config)
  sample = make_sample(online)
  loss, priorities = twin(online, target, sample, config)
  if changes:
    # The premise: the setting matters in this batch.
    usual, _ = twin(online, target, sample, CONFIG)
    assert abs(usual - loss) > 1e-3
  result = update(sample)
  np.testing.assert_allclose(result.metrics['loss'], loss, rtol=1e-4)
  found = np.asarray(result.priorities)
  np.testing.assert_allclose(found, priorities, rtol=1e-4)


def test_target_network_is_copied_each_period():
  online, target, update = make()
  before = arrays(target)
  for call in range(1, 5):
    update(make_sample(online))
    if call % 2 == 0:
      before = arrays(online)
    for found, expected in zip(arrays(target), before, strict=True):
      np.testing.assert_array_equal(found, expected)
