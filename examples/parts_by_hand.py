"""DQN assembled from its components, without `repertory.launch`.

    python examples/parts_by_hand.py
    python examples/parts_by_hand.py server

DQN learns Catch in one thread: an actor and an adder, a replay table, a dataset
and a learner. The table is in this process, or on a replay server.
"""

import sys

import numpy as np
import tensorflow as tf

from repertory.agents import dqn
from repertory.components import (
  actors,
  adders,
  learners,
  policies,
  replay,
  specs,
)
from repertory.components.actors import environment_loop
from repertory.components.replay import local
from repertory.environments.registry import registry

BATCH_SIZE, SEED = 32, 1


def main(over_server=False, max_steps=4_000):
  tf.random.set_seed(SEED)
  environment = registry.make_batch('catch:6x5', seeds=[SEED])
  spec = specs.make_environment_spec(environment)

  # Items, and the rate limit of the replay table.
  items = adders.Transitions(n_step=1, discount=0.99)
  limit = replay.RateLimit.with_default_buffer(
    samples_per_insert=8.0, min_size=200, batch_size=BATCH_SIZE
  )
  description = replay.uniform(items.signature(spec), 10_000, limit)

  # Replay table, writer and dataset.
  if over_server:
    server = replay.make_server([description])
    connection = replay.Connection(f'localhost:{server.port}')
    writer = replay.ReverbWriter(connection, description)
    dataset = replay.ReplayDataset(connection, description, BATCH_SIZE)
  else:
    table = local.Table(description, SEED)
    writer = local.LocalWriter(table)
    dataset = local.LocalBatches(table, BATCH_SIZE)

  # Learning: network, update, learner.
  agent = dqn.DQNBuilder(dqn.DQNConfig(n_step=1, prioritized=False))
  network = agent.make_network(spec)
  learner = learners.GradientLearner(agent.make_update(network, spec), dataset)

  # Acting: policy, adder, actor.
  policy = policies.EpsilonGreedyPolicy(network, [0.1], SEED)
  adder = items.make_adder(writer, batch_size=1)
  actor = actors.PolicyActor(policy, spec.observations, [0], adder=adder)

  # Acting and learning alternate; neither blocks on the rate limiter.
  loop = environment_loop.EnvironmentLoop(environment, actor)
  ratio = replay.ReplayRatio(description, BATCH_SIZE)
  steps, returns = 0, []
  while steps < max_steps:
    num_steps, episodes = loop.step()
    steps += num_steps
    returns += [episode.episode_return for episode in episodes]
    for _ in range(ratio.updates_due(learner.steps, adder.num_items)):
      learner.step()

  adder.close()
  dataset.close()
  return returns


if __name__ == '__main__':
  returns = main(over_server='server' in sys.argv[1:])
  print('Mean return of the first 100 episodes:', np.mean(returns[:100]))
  print('Mean return of the last 100 episodes:', np.mean(returns[-100:]))
