"""Reference implementation of the transition adder, and episodes for both."""

import dm_env
import numpy as np
from dm_env import specs as dm_env_specs

from repertory.components import specs, types

# All numbers follow from slot, episode and step; all are unique.
SPEC = specs.EnvironmentSpec(
  observations={
    'place': dm_env_specs.Array((3,), np.int64),
    'image': dm_env_specs.Array((2, 1), np.float32),
  },
  actions={
    'move': dm_env_specs.Array((), np.int32),
    'force': dm_env_specs.Array((2,), np.float32),
  },
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)
EXTRAS_SPEC = {'logits': dm_env_specs.Array((3,), np.float32)}

# Value of entries to be ignored.
_POISON = -12345


def observe(slot, episode, t):
  """Returns observation o_t of an episode; 'place' encodes which it is."""
  number = 1000 * slot + 100 * episode + t
  return {
    'place': np.array([slot, episode, t], np.int64),
    'image': np.full((2, 1), number, np.float32),
  }


def act(slot, episode, t):
  """Returns action a_t."""
  number = 10 * (1000 * slot + 100 * episode + t)
  return {
    'move': np.array(number + 1, np.int32),
    'force': np.array([number + 2, number + 3], np.float32),
  }


def explain(slot, episode, t):
  """Returns the extras of step t."""
  number = -10 * (1000 * slot + 100 * episode + t)
  return {'logits': np.array([number - 1, number - 2, number - 3], np.float32)}


class Slot:
  """Plays scripted episodes, one after another."""

  def __init__(self, slot, episodes):
    """Takes the slot's number, and arrays of rewards and discounts by episode.

    Entry t of both belongs to the step from o_t to o_{t+1}.
    """
    self._slot = slot
    self._episodes = episodes
    self._episode = self._t = 0
    self._ended = False

  def first(self):
    """Returns FIRST of the first episode."""
    return dm_env.TimeStep(
      dm_env.StepType.FIRST, 0.0, 1.0, observe(self._slot, self._episode, 0)
    )

  def step(self):
    """Returns action, extras and the timestep that follows."""
    if self._ended:
      self._episode, self._t, self._ended = self._episode + 1, 0, False
      action = act(0, 0, 0)
      action = {k: np.full_like(v, _POISON) for k, v in action.items()}
      extras = {'logits': np.full(3, _POISON, np.float32)}
      return action, extras, self.first()
    where = self._slot, self._episode, self._t
    rewards, discounts = self._episodes[self._episode]
    self._ended = self._t + 1 == len(rewards)
    step_type = dm_env.StepType.LAST if self._ended else dm_env.StepType.MID
    timestep = dm_env.TimeStep(
      step_type,
      rewards[self._t],
      discounts[self._t],
      observe(self._slot, self._episode, self._t + 1),
    )
    self._t += 1
    return act(*where), explain(*where), timestep


def stack(rows):
  """Stacks the nests of slots into one with a leading `[B]`."""
  return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def stack_timesteps(timesteps):
  """Stacks the timesteps of slots into a batch."""
  return dm_env.TimeStep(
    np.array([t.step_type for t in timesteps], np.int32),
    np.array([t.reward for t in timesteps], np.float32),
    np.array([t.discount for t in timesteps], np.float32),
    stack([t.observation for t in timesteps]),
  )


def run(adder, slots, num_steps):
  """Adds a number of steps of all slots."""
  adder.add_first(stack_timesteps([slot.first() for slot in slots]))
  for _ in range(num_steps):
    actions, extras, timesteps = zip(*[slot.step() for slot in slots])
    adder.add(stack(actions), stack_timesteps(timesteps), stack(extras))


def make_transitions(slot, episode, rewards, discounts, n_step, gamma):
  """Returns the transitions of a whole episode, from the equation.

  R_t = Σ_{i<k} γ^i r_{t+i+1} Π_{j<i} d_{t+j+1} and
  D_t = γ^(k-1) Π_{j<k} d_{t+j+1} with k = min(n, T − t).
  """
  transitions = []
  length = len(rewards)
  for t in range(length):
    k = min(n_step, length - t)
    total = 0.0
    for i in range(k):
      product = 1.0
      for j in range(i):
        product *= float(discounts[t + j])
      total += gamma**i * float(rewards[t + i]) * product
    discount = gamma ** (k - 1)
    for j in range(k):
      discount *= float(discounts[t + j])
    transitions.append(
      types.Transition(
        observe(slot, episode, t),
        act(slot, episode, t),
        total,
        discount,
        observe(slot, episode, t + k),
        explain(slot, episode, t),
      )
    )
  return transitions
