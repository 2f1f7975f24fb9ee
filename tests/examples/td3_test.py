"""Tests of TD3, assembled from the components."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.components import specs, types
from repertory.environments.registry import registry
from repertory.examples import td3

_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((3,), np.float32),
  actions=specs.BoundedArray((2,), np.float32, [-1, 2], [3, 4]),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


def _make_sample(seed):
  random = np.random.default_rng(seed)
  observation, next_observation = random.normal(size=[2, 8, 3])
  data = types.Transition(
    observation,
    random.uniform([-1, 2], [3, 4], [8, 2]),
    random.normal(size=8),
    np.ones(8),
    next_observation,
  )
  tensors = [tf.constant(leaf, tf.float32) for leaf in data[:5]]
  return types.Sample(types.Transition(*tensors), (), (), ())


def _run(directory, max_steps, seed=1, **settings):
  experiment = launch.Experiment(
    builder=td3.TD3Builder(td3.TD3Config(**settings)),
    environment_factory=registry.make_factory('gym:Pendulum-v1'),
    max_steps=max_steps,
    directory=str(directory),
    seed=seed,
  )
  return launch.run(experiment, display=False).status


def test_policy_and_targets_are_updated_every_second_time():
  config = td3.TD3Config(hidden_sizes=(4,), tau=0.25)
  builder = td3.TD3Builder(config)
  policy = builder.make_network(_SPEC)
  update = builder.make_update(policy, _SPEC)
  kinds = {
    'policy': policy,
    'critics': update._critics,
    'target_policy': update._target_policy,
    'target_critics': update._target_critics,
  }

  def read():
    return {
      kind: np.concatenate([v.numpy().ravel() for v in network.variables])
      for kind, network in kinds.items()
    }

  seen = [read()]
  for seed in range(4):
    metrics = update(_make_sample(seed)).metrics
    assert np.isfinite([float(value) for value in metrics.values()]).all()
    seen.append(read())
  changed = [
    {kind for kind in kinds if (before[kind] != after[kind]).any()}
    for before, after in itertools.pairwise(seen)
  ]
  assert changed == [{'critics'}, set(kinds)] * 2
  for before, after in ((seen[1], seen[2]), (seen[3], seen[4])):
    for kind in ('policy', 'critics'):
      target = f'target_{kind}'
      np.testing.assert_allclose(
        after[target],
        0.75 * before[target] + 0.25 * after[kind],
        rtol=1e-4,
        atol=1e-6,
      )


def test_runs(tmp_path):
  status = _run(
    tmp_path, 300, hidden_sizes=(8,), batch_size=8, num_random_steps=20,
    min_replay_size=20, samples_per_insert=8.0,
  )  # fmt: skip
  assert status.steps == 300
  assert status.learner_steps == 300 - 20
  assert status.evaluation_return is not None
  assert -2000 < status.evaluation_return < 0


@pytest.mark.learning
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_learns_pendulum(seed, tmp_path):
  evaluation_return = _run(tmp_path, 20_000, seed).evaluation_return
  assert evaluation_return is not None
  assert evaluation_return >= -200
