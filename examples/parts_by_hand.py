"""DQN assembled from its components, without `repertory.launch`.

    python examples/parts_by_hand.py
    python examples/parts_by_hand.py server

DQN learns Catch in one thread: a replay table, a learner, an actor and an
evaluator, in the order of `launch/topologies/single.py`. The table is in this
process, or on a replay server.
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
from repertory.components.replay import local, served
from repertory.environments.registry import registry

BATCH_SIZE, SEED = 32, 1
EVALUATION_STEPS = 1_000  # Between two evaluations.


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
  server = served.ReplayServer([description], SEED) if over_server else None
  if server:
    connection = served.ServerConnection(server.address)
    writer = served.ServedWriter(connection, description)
    dataset = served.ServedBatches(connection, description, BATCH_SIZE)
  else:
    table = local.Table(description, SEED)
    writer = local.LocalWriter(table)
    dataset = local.LocalBatches(table, BATCH_SIZE)

  # Learner: network and update.
  agent = dqn.DQNBuilder(dqn.DQNConfig(n_step=1, prioritized=False))
  network = agent.make_network(spec)
  learner = learners.GradientLearner(agent.make_update(network, spec), dataset)

  # Actor: policy and adder.
  policy = policies.EpsilonGreedyPolicy(network, [0.1], SEED)
  adder = items.make_adder(writer, batch_size=1)
  actor = actors.PolicyActor(policy, spec.observations, [0], adder=adder)
  loop = environment_loop.EnvironmentLoop(environment, actor)

  # Evaluator: the greedy policy, in an environment of its own.
  greedy = policies.EpsilonGreedyPolicy(network, [0.0], SEED)
  evaluator = environment_loop.EnvironmentLoop(
    registry.make_batch('catch:6x5', seeds=[SEED + 1]),
    actors.PolicyActor(greedy, spec.observations, [0]),
  )

  # Acting and learning alternate; neither blocks on the rate limiter.
  ratio = replay.ReplayRatio(description, BATCH_SIZE)
  steps, returns = 0, []
  while steps < max_steps:
    num_steps, episodes = loop.step()
    steps += num_steps
    returns += [episode.episode_return for episode in episodes]
    for _ in range(ratio.updates_due(learner.steps, adder.num_items)):
      learner.step()
    if num_steps and steps % EVALUATION_STEPS == 0:
      found = [e.episode_return for e in evaluator.run_episodes(20)]
      print(f'Step {steps}: mean return of the greedy policy', np.mean(found))

  adder.close()
  dataset.close()
  if server:
    server.stop()
  return returns


if __name__ == '__main__':
  returns = main(over_server='server' in sys.argv[1:])
  print('Mean return of the first 100 episodes:', np.mean(returns[:100]))
  print('Mean return of the last 100 episodes:', np.mean(returns[-100:]))
