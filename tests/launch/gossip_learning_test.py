"""Trains learners that mix, at equal steps; run by `make test-learning`."""

import pytest

from support.agents import trainings

pytestmark = pytest.mark.learning

_over_learners = pytest.mark.parametrize('num_learners', [1, 2, 4])


def _train(directory, agent, num_learners, *settings, steps, seed):
  return trainings.train(
    directory,
    agent,
    'gym:CartPole-v1',
    f'--num_learners={num_learners}',
    *settings,
    steps=steps,
    topology=('gossip', 'local_mt'),
    seed=seed,
    environments=8 * num_learners,
    deadline_seconds=1_800,
  )


@_over_learners
@trainings.over_seeds
def test_impala_balances_the_pole(tmp_path, num_learners, seed):
  mean_return = _train(
    tmp_path, 'impala', num_learners, steps=1_000_000, seed=seed
  )
  assert mean_return >= 475


@_over_learners
@trainings.over_seeds
def test_ppo_balances_the_pole(tmp_path, num_learners, seed):
  # Those of rl-baselines3-zoo, hyperparams/ppo.yml; 400,000 steps are 1,562
  # updates of one learner.
  settings = (
    '--config.unroll_length=32', '--config.num_epochs=20',
    '--config.num_minibatches=1', '--config.discount=0.98',
    '--config.lambda_=0.8', '--config.entropy_cost=0',
    f'--config.anneal_learner_steps={1_562 // num_learners}',
  )  # fmt: skip
  mean_return = _train(
    tmp_path, 'ppo', num_learners, *settings, steps=400_000, seed=seed
  )
  assert mean_return >= 475
