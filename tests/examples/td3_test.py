"""Tests of TD3, assembled from the components."""

import pytest

from repertory import launch
from repertory.environments.registry import registry
from repertory.examples import td3


def _run(directory, max_steps, seed=1, **settings):
  experiment = launch.Experiment(
    builder=td3.TD3Builder(td3.TD3Config(**settings)),
    environment_factory=registry.make_factory('gym:Pendulum-v1'),
    max_steps=max_steps,
    directory=str(directory),
    seed=seed,
  )
  return launch.run(experiment, display=False).status


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
