"""Tests that every topology minimizes and logs an additional loss."""

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.agents import dqn, impala, ppo, sac
from repertory.components import losses
from repertory.components.runtime import data_parallel
from repertory.environments.registry import registry
from repertory.launch.experiments import directories
from repertory.launch.topologies import offline
from support.launch import log_files
from support.replay import recorded_episodes
from support.system import rare_cases

pytestmark = pytest.mark.usefixtures('threads_end')

_REPLAY = {
  'hidden_sizes': (8,), 'min_replay_size': 20, 'max_replay_size': 200,
  'batch_size': 8, 'samples_per_insert': 1.0, 'jit_compile': False,
}  # fmt: skip
_UNROLLS = {
  'hidden_sizes': (8,), 'unroll_length': 5, 'batch_size': 2,
  'jit_compile': False,
}  # fmt: skip
# Agents by topology, each of them at least once.
_CASES = [
  'single sac', 'anakin ppo', 'anakin xla', 'anakin dqn', 'sebulba impala',
  'gossip ppo', 'distributed dqn', 'central impala', 'offline dqn',
]  # fmt: skip


class _Counting:
  """Fits a variable to the share of steps that end an episode."""

  def make_network(self, spec):
    network = super().make_network(spec)
    network.share = tf.Variable(0.0, name='share')
    return network

  def additional_loss(self, network, sample):
    data = sample.data
    network = getattr(network, 'policy', network)
    split_rows = data_parallel.split_rows(lambda x: (network.share - x) ** 2)
    errors = split_rows(1 - data.discount)
    mask = getattr(data, 'mask', tf.ones_like(errors, tf.bool))
    loss = losses.masked_mean(errors, mask)
    return loss, {'share': network.share + 0.0}


class _DQN(_Counting, dqn.DQNBuilder):
  pass


class _SAC(_Counting, sac.SACBuilder):
  pass


class _PPO(_Counting, ppo.PPOBuilder):
  pass


class _IMPALA(_Counting, impala.IMPALABuilder):
  pass


_BUILDERS = {
  'dqn': _DQN(dqn.DQNConfig(**_REPLAY)),
  'sac': _SAC(sac.SACConfig(**_REPLAY)),
  'ppo': _PPO(ppo.PPOConfig(**_UNROLLS, num_minibatches=2)),
  'impala': _IMPALA(impala.IMPALAConfig(**_UNROLLS)),
  'xla': _PPO(
    ppo.PPOConfig(**{**_UNROLLS, 'jit_compile': True}, num_minibatches=2)
  ),
}


@pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, ['single sac', 'anakin ppo'])
)
def test_is_minimized_and_logged(case, tmp_path):
  topology, name = case.split()
  actors = {'environments_per_actor': 2, 'num_actors': 1}
  environment = 'tensor:catch' if topology == 'anakin' else 'catch'
  if topology in ('distributed', 'gossip'):
    actors['num_actors'] = 2
  if topology == 'offline':
    recorded_episodes.play_randomly(tmp_path / 'data', 'catch', 200)
    topology, actors = offline.Offline(data=(str(tmp_path / 'data'),)), {}
  experiment = launch.Experiment(
    _BUILDERS[name],
    registry.make_factory(environment),
    max_steps=400 if actors else 40,
    directory=str(tmp_path / 'run'),
    evaluation_episodes=0,
    timeout_seconds=60,
    **actors,
  )
  status = launch.run(experiment, topology, display=False).status
  assert status.learner_steps > 10
  rows = log_files.rows(tmp_path / 'run', 'learner')
  assert all(np.isfinite(row['additional_loss']) for row in rows)
  arrays = directories.load_checkpoint(str(tmp_path / 'run')).arrays
  shares = [array for path, array in arrays.items() if 'share:0' in path]
  assert shares  # The target network's is one, too.
  assert all(0 < share < 1 for share in shares[:1])
