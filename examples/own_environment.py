"""Custom environment, on which a baseline agent is trained.

    python examples/own_environment.py runs/corridor

An environment must implement `dm_env.Environment`, draw all random numbers from
its seed, and distinguish termination (`dm_env.termination`, with discount 0)
from truncation (`dm_env.truncation`, with discount 1).
"""

import sys

import dm_env
import numpy as np
from dm_env import specs

from repertory import launch
from repertory.agents import dqn

LEFT, RIGHT = 0, 1


class Corridor(dm_env.Environment):
  """Walk to the lamp, which hangs at one end or the other.

  The walker starts in the middle cell. Each step costs 0.01; reaching the
  lamp's end is rewarded with +1, the other end with −1, and either ends the
  episode. After `max_steps` steps the episode is truncated.

  Observation: a dictionary with 'cell', one-hot `[num_cells]`, and 'lamp', −1
  for left and +1 for right.
  """

  def __init__(self, seed: int, num_cells: int = 7, max_steps: int = 30):
    self._random = np.random.default_rng(seed)
    self._num_cells = num_cells
    self._max_steps = max_steps
    self._cell = 0
    self._lamp = 1
    self._steps = 0
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    self._cell = self._num_cells // 2
    self._lamp = int(self._random.choice([-1, 1]))
    self._steps = 0
    self._ended = False
    return dm_env.restart(self._observe())

  def step(self, action) -> dm_env.TimeStep:
    if self._ended:  # dm_env: a step after the last one starts an episode.
      return self.reset()
    self._cell += 1 if action == RIGHT else -1
    self._steps += 1
    at_end = {0: -1, self._num_cells - 1: 1}.get(self._cell)
    if at_end is not None:
      self._ended = True
      reward = 1.0 if at_end == self._lamp else -1.0
      return dm_env.termination(reward, self._observe())
    if self._steps == self._max_steps:
      self._ended = True
      return dm_env.truncation(-0.01, self._observe())
    return dm_env.transition(-0.01, self._observe())

  def observation_spec(self):
    return {
      'cell': specs.BoundedArray((self._num_cells,), np.float32, 0, 1),
      'lamp': specs.BoundedArray((1,), np.float32, -1, 1),
    }

  def action_spec(self):
    return specs.DiscreteArray(2, name='action')

  def _observe(self):
    cell = np.zeros(self._num_cells, np.float32)
    cell[self._cell] = 1
    return {'cell': cell, 'lamp': np.array([self._lamp], np.float32)}


def main(directory: str) -> None:
  experiment = launch.Experiment(
    builder=dqn.DQNBuilder(dqn.DQNConfig(hidden_sizes=(64, 64))),
    environment_factory=Corridor,
    max_steps=3_000,
    directory=directory,
    agent='dqn',
    environment='corridor',
    environments_per_actor=4,
  )
  result = launch.run(experiment)
  print(
    f'Mean return of the last evaluation: {result.status.evaluation_return}'
  )
  episodes = launch.evaluate(experiment, num_episodes=20)
  print(f'Mean length: {sum(e.length for e in episodes) / len(episodes)}')


if __name__ == '__main__':
  main(sys.argv[1] if len(sys.argv) > 1 else 'runs/corridor')
