"""Evaluation of trained policies, by the same code for every library."""

import gymnasium
import numpy as np


def evaluate(act, environment, seeds):
  """Returns the undiscounted return of one episode for each seed.

  Args:
    act: Function from observations `[B, ...]` of all episodes, including those
      that have ended, to actions `[B, ...]`.
    environment: Id in Gymnasium.
    seeds: Seed of the environment of each episode. [B]
  """
  environments = [gymnasium.make(environment) for _ in seeds]
  pairs = zip(environments, seeds)
  observations = np.stack([one.reset(seed=seed)[0] for one, seed in pairs])
  returns = [0.0 for _ in seeds]
  running = set(range(len(seeds)))
  while running:
    actions = act(observations)
    for i in sorted(running):
      result = environments[i].step(actions[i])
      observations[i], reward, terminated, truncated, _ = result
      returns[i] += float(reward)
      if terminated or truncated:
        running.remove(i)
  return returns
