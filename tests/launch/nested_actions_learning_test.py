"""Trains agents whose actions have several parts; by `make test-learning`."""

import pytest

from repertory import launch

pytestmark = pytest.mark.learning

_over_seeds = pytest.mark.parametrize('seed', (1, 2, 3))


def _train(directory, agent, environment, steps, seed, topology, **config):
  """Trains an agent; returns the mean return of its last evaluation."""
  experiment = launch.make_experiment(
    agent, environment, max_steps=steps, config=config, seed=seed,
    directory=str(directory), evaluation_episodes=100,
    evaluation_period=steps,
  )  # fmt: skip
  status = launch.run(experiment, topology, display=False).status
  assert status.evaluation_return is not None
  return status.evaluation_return


# Both dials right in all of 8 steps. Who leaves out one has 8/3 at most.
@_over_seeds
@pytest.mark.parametrize(
  ('agent', 'steps', 'config'),
  [
    ('ppo', 30_000, {}),
    ('impala', 60_000, {}),
    ('dqn', 20_000, {'discount': 0.5}),
  ],
)
def test_dials_are_set(tmp_path, agent, steps, config, seed):
  environment = 'tensor:lock'
  mean_return = _train(
    tmp_path, agent, environment, steps, seed, 'anakin', **config
  )
  assert mean_return >= 7.9


# An integer of each dial and a float: without the key the return is at most 4.
@_over_seeds
@pytest.mark.parametrize(
  ('agent', 'steps', 'topology', 'config'),
  [
    ('ppo', 50_000, 'single', {}),
    # Gaussians want a smaller learning rate that falls, see docs/agents.
    (
      'impala',
      200_000,
      'anakin',
      {'learning_rate': 5e-4, 'anneal_learner_steps': 2_800},
    ),
  ],
)
def test_key_is_turned_too(tmp_path, agent, steps, topology, config, seed):
  mean_return = _train(
    tmp_path, agent, 'tensor:lock?key=true', steps, seed, topology, **config
  )
  assert mean_return >= 6.5
