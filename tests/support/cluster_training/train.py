"""Training script on several hosts, as a user's, with its own environment.

python train.py --address=10.0.0.1:6379 --directory=runs/signals
"""

import argparse
import json

from signals_to_follow import Signals

from repertory import launch
from repertory.agents.interface import registry
from repertory.launch.launchers import ray_launcher
from repertory.launch.topologies import central, distributed, gossip

_NUM_ACTORS = 3


def _make(seed):
  return Signals(seed)


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('--address', default='')
  parser.add_argument('--directory', required=True)
  parser.add_argument('--agent', default='dqn')
  parser.add_argument('--replay', default='auto')
  parser.add_argument('--storage')
  parser.add_argument('--network', default='')
  parser.add_argument('--topology', default='distributed')
  parser.add_argument('--steps', type=int, default=4000)
  arguments = parser.parse_args()
  experiment = launch.Experiment(
    registry.make_builder(arguments.agent, {}),
    _make,
    max_steps=arguments.steps,
    directory=arguments.directory,
    agent=arguments.agent,
    environment='signals',
    num_actors=_NUM_ACTORS,
    storage=arguments.storage,
    checkpoint_period_seconds=4,
    timeout_seconds=120,
  )
  launcher = (
    ray_launcher.RayLauncher(arguments.address, arguments.network)
    if arguments.address
    else 'local_mp'
  )
  topology = {
    'distributed': distributed.Distributed(replay=arguments.replay),
    'central': central.Central(replay=arguments.replay),
    'gossip': gossip.Gossip(num_learners=_NUM_ACTORS),
  }[arguments.topology]
  result = launch.run(experiment, topology, launcher)
  print(json.dumps({'best_return': result.status.best_return}))


if __name__ == '__main__':
  main()
