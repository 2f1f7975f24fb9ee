"""One-step episodes in which all values are derived from one number."""

from collections.abc import Callable, Sequence

import dm_env
import numpy as np

from repertory.components import adders, specs, types

# Observations are large enough to be shared by transitions. Actions are a nest
# whose parts are not in the order of their keys.
SPEC = specs.EnvironmentSpec(
  observations=specs.Array((300,), np.float32),
  actions={
    'number': specs.Array((), np.int32),
    'force': [specs.Array((2,), np.float32)],
  },
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)


def play(
  adder: adders.Adder,
  numbers: Sequence[int],
  add: Callable,
  num_slots: int = 1,
) -> None:
  """Plays a one-step episode for each number, in every slot."""

  def timestep(step_type: dm_env.StepType, number: float) -> dm_env.TimeStep:
    column = np.full([num_slots], number, np.float32)
    return dm_env.TimeStep(
      np.full([num_slots], step_type, np.int32),
      column,
      np.zeros([num_slots], np.float32),
      np.repeat(column[:, np.newaxis], 300, 1),
    )

  is_new = adder.num_items == 0
  for number in numbers:
    action = {
      'number': np.full([num_slots], number, np.int32),
      'force': [np.full([num_slots, 2], number, np.float32)],
    }
    first = timestep(dm_env.StepType.FIRST, number)
    if is_new:
      adder.add_first(first)
    else:
      add(action, first)
    is_new = False
    add(action, timestep(dm_env.StepType.LAST, number + 0.5))


def check_transitions(data: types.Transition) -> list[int]:
  """Checks that transitions are consistent; returns their numbers."""
  numbers = np.asarray(data.action['number'])
  (force,) = data.action['force']
  np.testing.assert_array_equal(
    np.asarray(force),
    np.repeat(numbers[:, np.newaxis], 2, 1),
    'All parts of an action must belong to the same step.',
  )
  for name, expected in (
    ('observation', np.repeat(numbers[:, np.newaxis], 300, 1)),
    ('reward', numbers + 0.5),
    ('discount', np.zeros_like(numbers)),
    ('next_observation', np.repeat(numbers[:, np.newaxis] + 0.5, 300, 1)),
  ):
    np.testing.assert_array_equal(
      np.asarray(getattr(data, name)),
      expected,
      f'{name} must belong to the same step as the action.',
    )
  return numbers.tolist()
