"""Tests of the step budget."""

from repertory.launch.coordination import coordinator


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


def test_takes_back_unused_steps():
  steps = coordinator.StepBudget(max_steps=10, num_actors=1)
  assert steps.acquire('actor/0', 10, 0) == 10
  steps.use('actor/0', 4)
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
