"""Tests of the custom networks of the documentation."""

import importlib.util
import pathlib
import re
import sys

import numpy as np
import pytest

from repertory import launch
from repertory.agents.interface import conformance
from repertory.components import specs, types

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / 'docs' / 'my_network.md').read_text('utf-8')
_NAME = 'my_networks'


@pytest.fixture(name='module', scope='module')
def _module(tmp_path_factory):
  path = tmp_path_factory.mktemp('page') / f'{_NAME}.py'
  path.write_text('\n'.join(re.findall(r'(?ms)^```python\n(.*?)^```$', _PAGE)))
  spec = importlib.util.spec_from_file_location(_NAME, path)
  module = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  yield module
  del sys.modules[_NAME]


def _make_spec(observations, actions):
  return specs.EnvironmentSpec(
    observations,
    actions,
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
  )


class _OnBoards(conformance.BuilderConformance):
  @pytest.fixture(autouse=True)
  def _set_up(self, module):
    self.module = module

  def make_spec(self):
    board = specs.Array((4, 5), np.float32)
    return _make_spec(board, specs.DiscreteArray(3, np.int32))


class TestBoardDQN(_OnBoards):
  def make_builder(self):
    return self.module.BoardDQN(
      self.module.BoardDQNConfig(
        channels=2, hidden_sizes=(8,), batch_size=4, min_replay_size=8
      )
    )

  def test_refuses_other_observations(self):
    spec = self.make_spec()._replace(observations=specs.Array((4,), np.float32))
    with pytest.raises(ValueError, match=r'must be boards \[H, W\]'):
      self.make_builder().make_network(spec)


class TestBoardPPO(_OnBoards):
  def make_builder(self):
    return self.module.BoardPPO(
      self.module.ppo.PPOConfig(
        core='lstm', core_size=4, hidden_sizes=(8,), unroll_length=6
      )
    )


class TestTwoHeadedDQN(_OnBoards):
  def make_builder(self):
    return self.module.TwoHeadedDQN(
      self.module.dqn.DQNConfig(
        hidden_sizes=(8,), batch_size=4, min_replay_size=8
      )
    )

  def test_second_head_learns_rewards(self):
    builder, spec = self.make_builder(), self.make_spec()
    network = builder.make_network(spec)
    by_name = {variable.name: variable for variable in network.variables}
    by_name['two_heads/reward_head/w:0'].assign(np.zeros([8, 3]))
    by_name['two_heads/reward_head/b:0'].assign([1.0, 2.0, 3.0])
    data = types.Transition(
      np.zeros([2, 4, 5], 'f'), np.array([0, 2]), np.array([1.5, 1.0], 'f'),
      np.ones([2], 'f'), np.zeros([2, 4, 5], 'f'),
    )  # fmt: skip
    sample = types.Sample(data, (), (), ())
    loss, metrics = builder.additional_loss(network, sample)
    assert metrics['reward_error'] == (0.5**2 + 2**2) / 2
    np.testing.assert_allclose(loss, 0.1 * 2.125, rtol=1e-6)


class TestNormalizedSAC:
  def test_is_made_of_its_own_critics(self, module):
    config = module.sac.SACConfig(hidden_sizes=(8, 8), num_critics=3)
    builder = module.NormalizedSAC(config)
    floats = specs.BoundedArray((2,), np.float32, -1, 1)
    spec = _make_spec(specs.Array((3,), np.float32), floats)
    critics = builder.make_critics(spec)
    values = critics(np.zeros([5, 3], 'f'), np.zeros([5, 2], 'f'))
    assert values.shape == (5, 3)
    update = builder.make_update(builder.make_network(spec), spec)
    # Scale and offset of all critics, and of all target critics.
    learned = [v for group in update.learned.values() for v in group]
    normalizing = [v for v in learned if '/layer_norm/' in v.name]
    assert len(normalizing) == 2 * 2
    assert {tuple(v.shape) for v in normalizing} == {(3, 1, 8)}


@pytest.mark.chaos
def test_learns(module, tmp_path):
  config = {'channels': 4, 'jit_compile': False}
  experiment = launch.make_experiment(
    f'{_NAME}:BoardDQN', 'catch:5x3', max_steps=1_000, config=config,
    directory=str(tmp_path), evaluation_episodes=50,
  )  # fmt: skip
  status = launch.run(experiment, display=False).status
  assert (status.evaluation_return or -1) > 0.5
  policy = launch.load_policy(str(tmp_path), trust=True)
  assert policy.spec.observations.shape == (5, 3)
