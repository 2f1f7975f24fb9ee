"""Tests that no topology trains without variables that come late."""

import pytest

from repertory import launch
from repertory.agents import dqn
from repertory.agents.interface import builder
from repertory.components import specs
from repertory.environments.registry import registry
from repertory.launch.topologies import offline
from support.agents import late_builders
from support.replay import recorded_episodes
from support.system import rare_cases

pytestmark = pytest.mark.usefixtures('threads_end')

_CONFIG = dqn.DQNConfig(
  hidden_sizes=(8,),
  min_replay_size=20,
  max_replay_size=200,
  batch_size=8,
  samples_per_insert=1.0,
  jit_compile=False,
)
_TOPOLOGIES = [
  'single', 'distributed', 'central', 'anakin', 'sebulba', 'gossip', 'offline',
]  # fmt: skip


def _run(builder_class, directory, topology='single'):
  if topology == 'offline':
    recorded_episodes.play_randomly(directory / 'data', 'catch', 100)
    topology = offline.Offline(data=(str(directory / 'data'),))
    actors = {}
  else:
    actors = {'environments_per_actor': 1, 'num_actors': 1}
    if topology in ('distributed', 'gossip'):
      actors['num_actors'] = 2
  is_anakin = topology == 'anakin'
  experiment = launch.Experiment(
    builder_class(_CONFIG),
    registry.make_factory('tensor:catch' if is_anakin else 'catch'),
    max_steps=200,
    directory=str(directory / 'run'),
    evaluation_episodes=0,
    timeout_seconds=60,
    **actors,
  )
  with pytest.raises(launch.NodeError) as error:
    launch.run(experiment, topology, display=False)
  message = error.value.failure.summary
  assert 'All variables must exist when make_network returns' in message
  assert 'reward_head/w:0 [' in message
  return message


@pytest.mark.parametrize('topology', rare_cases.daily(_TOPOLOGIES, ['anakin']))
def test_late_head_is_refused(topology, tmp_path):
  message = _run(late_builders.LateHead, tmp_path, topology)
  assert 'in the first call of _Update: reward_head/w:0 [8, 1], ' in message


@pytest.mark.parametrize(
  'topology', rare_cases.daily(['single', 'central', 'anakin'], ['anakin'])
)
def test_late_layer_of_a_policy_is_refused(topology, tmp_path):
  assert 'in the first step of ' in _run(
    late_builders.LateInPolicy, tmp_path, topology
  )


class _ForgetfulOfMore(dqn.DQNBuilder):
  def make_policy(self, network, acting):
    super().make_policy(network, acting)

  def make_update(self, network, spec):
    super().make_update(network, spec)


def test_builder_that_returns_no_policy_or_update_is_named():
  forgetful = _ForgetfulOfMore(_CONFIG)
  spec = specs.make_environment_spec(registry.make('catch', 0))
  network = forgetful.make_network(spec)
  with pytest.raises(ValueError, match=r'OfMore.make_update must return'):
    forgetful.make_update(network, spec)
  acting = builder.Acting(spec, num_environments=1, seed=0)
  with pytest.raises(ValueError, match=r'OfMore.make_policy must return'):
    forgetful.make_policy(network, acting)


def test_network_that_the_update_completes_is_refused(tmp_path):
  assert 'created only in make_update: ' in _run(
    late_builders.MadeByUpdate, tmp_path
  )
