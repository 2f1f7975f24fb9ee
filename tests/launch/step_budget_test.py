"""Tests of the step budget."""

import random

from repertory.launch.coordination import coordinator


def test_grants_all_steps_and_no_more():
  steps = coordinator.StepBudget(max_steps=100, num_actors=2)
  done = 0
  while granted := steps.acquire('actor/0', 1, done):
    steps.use('actor/0', granted)
    done += granted
  assert done == 100


def test_grants_at_least_the_wanted_steps():
  steps = coordinator.StepBudget(max_steps=10, num_actors=4)
  assert steps.acquire('actor/0', 8, 0) == 8
  assert steps.acquire('actor/1', 8, 0) == 8  # Two are left: one batch more.
  assert steps.acquire('actor/0', 8, 0) == 0


def test_grants_get_smaller_towards_the_end():
  steps = coordinator.StepBudget(max_steps=1600, num_actors=4)
  assert steps.acquire('actor/0', 1, 0) == 1600 // 16
  assert steps.acquire('actor/1', 1, 0) == 1500 // 16
  # And no grant exceeds the maximum.
  assert coordinator.StepBudget(10**6, 1).acquire('actor/0', 1, 0) == 1000


def test_steps_before_this_start_count():
  steps = coordinator.StepBudget(max_steps=100, num_actors=1)
  assert steps.acquire('actor/0', 1, 100) == 0


def test_takes_back_unused_steps():
  steps = coordinator.StepBudget(max_steps=10, num_actors=1)
  assert steps.acquire('actor/0', 10, 0) == 10
  steps.give_back('actor/0', 4)
  assert steps.acquire('actor/1', 1, 0) == 1
  assert steps.acquire('actor/1', 3, 0) == 3
  assert steps.acquire('actor/1', 1, 0) == 0


def test_unreported_steps_of_a_lost_actor_are_free():
  steps = coordinator.StepBudget(max_steps=10, num_actors=1)
  assert steps.acquire('actor/0', 10, 0) == 10
  steps.use('actor/0', 4)
  assert steps.acquire('actor/1', 1, 4) == 0
  steps.drop('actor/0')
  assert steps.acquire('actor/1', 6, 4) == 6
  assert steps.acquire('actor/1', 1, 4) == 0


def test_remaining_steps_equal_a_sum_over_all_actors():
  draw = random.Random(0)
  steps = coordinator.StepBudget(max_steps=2000, num_actors=3)
  granted, done, kept = dict.fromkeys('abc', 0), 0, True
  while kept:
    name = draw.choice('abc')
    what = draw.choice(('acquire', 'use', 'give_back', 'drop'))
    some = draw.randint(0, granted[name])
    if what == 'acquire':
      left = 2000 - done - sum(granted.values())
      kept = steps.acquire(name, 1, done)
      assert kept == (max(1, left // 12) if left > 0 else 0)
      granted[name] += kept
    elif what == 'drop':
      steps.drop(name)
      granted[name] = 0
    else:
      getattr(steps, what)(name, some)
      granted[name] -= some
      done += some if what == 'use' else 0
  assert done > 1000
