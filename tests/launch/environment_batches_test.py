"""Tests of the seeds of restarted environments."""

import itertools

from repertory.launch.experiments import environment_batches


def test_first_generation_has_the_given_seeds():
  assert environment_batches.renew([5, 7], 0, 0) == [5, 7]


def test_all_lives_differ():
  lives = itertools.product(range(4), range(4))
  seeds = [
    tuple(environment_batches.renew([5, 7], *generation))
    for generation in lives
  ]
  assert len({seed for pair in seeds for seed in pair}) == 2 * 16
  assert seeds[5] == tuple(environment_batches.renew([5, 7], 1, 1))
