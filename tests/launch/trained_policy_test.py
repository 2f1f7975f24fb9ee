"""Tests of `launch.load_policy`, and of exported models."""

import dataclasses
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tree

from repertory import launch
from repertory.components import specs
from support.agents import known_agents, trained_agents
from support.system import rare_cases

_AGENTS = known_agents.NAMES
_DAILY = ('dqn', 'r2d2')
_VECTOR = specs.Array((3,), np.float32)
_RARE = tuple(name for name in _AGENTS if name not in _DAILY)

# Runs models on what is in a file, where neither this package nor Sonnet is.
_RUN_ALONE = """
import sys
import numpy as np
import tensorflow as tf

class Blocked:
  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in ('repertory', 'sonnet', 'tree', 'acme', 'reverb'):
      raise ImportError(name)

sys.meta_path.insert(0, Blocked())
for agent in sys.argv[2:]:
  folder = f'{sys.argv[1]}/{agent}'
  inputs = dict(np.load(f'{folder}/inputs.npz'))
  signatures = tf.saved_model.load(f'{folder}/model').signatures
  act, outputs = signatures['serving_default'], {}
  for size in (3, 2):
    state = {}
    if 'initial_state' in signatures:
      state = signatures['initial_state'](batch_size=tf.constant(size))
    for t in range(4):
      observed = {
        name.split(':')[0]: tf.constant(array[t])
        for name, array in inputs.items() if name.endswith(f':{size}')
      }
      if 'previous_action' in act.structured_input_signature[1]:
        observed['previous_action'] = (
          outputs[f'{size}:{t - 1}'] if t else tf.zeros([size], tf.int32)
        )
      state = dict(act(**observed, **state))
      outputs[f'{size}:{t}'] = state.pop('action')
  np.savez(f'{folder}/outputs.npz', **outputs)
"""


def load(agent, directory, explore=False, **settings):
  experiment = trained_agents.make_experiment(agent, directory, **settings)
  trained_agents.write_checkpoint(experiment)
  return launch.load_policy(experiment, explore=explore)


def _choose_actions(agents, root):
  """Returns actions of the policy and of its exported model, by agent."""
  ours = {}
  for agent in agents:
    policy = load(agent, root / agent)
    policy.export_saved_model(str(root / agent / 'model'))
    random, inputs, ours[agent] = np.random.default_rng(2), {}, {}
    for size in (3, 2):
      observations = trained_agents.draw(
        policy.spec.observations, random, 4, size
      )
      rewards = random.normal(size=[4, size]).astype(np.float32)
      rewards[0] = 0
      policy.reset()
      for t in range(4):
        observation = tree.map_structure(lambda x, t=t: x[t], observations)
        ours[agent][f'{size}:{t}'] = policy.act(observation, rewards[t])
      for path, leaf in tree.flatten_with_path(observations):
        inputs['_'.join(['observation', *path]) + f':{size}'] = leaf
      if agent == 'r2d2':
        inputs[f'previous_reward:{size}'] = rewards
    np.savez(root / agent / 'inputs.npz', **inputs)
  subprocess.run(
    [sys.executable, '-c', _RUN_ALONE, root, *agents], check=True, timeout=300
  )
  theirs = {
    agent: dict(np.load(root / agent / 'outputs.npz')) for agent in agents
  }
  return ours, theirs


@pytest.mark.parametrize(
  # A process that loads them takes longer than they do.
  'agents',
  rare_cases.daily([_DAILY, _RARE], [_DAILY]),
  ids=' '.join,
)
def test_models_act_alike_without_this_package(tmp_path, agents):
  actions = _choose_actions(agents, tmp_path)
  for agent in agents:
    ours, theirs = (each[agent] for each in actions)
    assert ours.keys() == theirs.keys(), agent
    for name in ours:
      assert ours[name].dtype == theirs[name].dtype, agent
      np.testing.assert_allclose(
        ours[name], theirs[name], atol=1e-5, err_msg=agent
      )
    assert len({array.tobytes() for array in ours.values()}) > 2, agent


@pytest.mark.parametrize('agent', rare_cases.daily(_AGENTS, _DAILY))
def test_acts_as_evaluations_do(tmp_path, agent):
  policy = load(agent, tmp_path)
  experiment = trained_agents.make_experiment(agent, tmp_path)
  (episode,) = launch.evaluate(experiment, 1)
  environment = experiment.environment_factory(0)
  for _ in range(2):
    policy.reset()
    timestep, episode_return = environment.reset(), 0.0
    while not timestep.last():
      action = policy.act(timestep.observation, timestep.reward)
      environment.action_spec().validate(action)
      timestep = environment.step(action)
      episode_return += timestep.reward
    assert episode_return == pytest.approx(episode.episode_return, rel=1e-5)


def test_takes_observations_of_lists_in_mappings(tmp_path):
  observations = {'a': [_VECTOR, {'b': (_VECTOR, [_VECTOR])}]}
  experiment = trained_agents.make_experiment('r2d2', tmp_path)

  kind: Any = type(experiment.builder)

  class Keeping(kind):
    """All of its modules keep the spec, in which TensorFlow puts wrappers."""

    def make_network(self, spec):
      network = super().make_network(spec)
      network.spec, network.observations = spec, spec.observations
      return network

    def make_policy(self, network, acting):
      policy = super().make_policy(network, acting)
      policy.spec, policy.observations = acting.spec, acting.spec.observations
      return policy

  made = [trained_agents.Environment(observations, _actions_of(experiment))]
  experiment = dataclasses.replace(
    experiment,
    builder=Keeping(experiment.builder.config),
    environment_factory=lambda seed: made[0],
  )
  trained_agents.write_checkpoint(experiment)
  policy = launch.load_policy(experiment)
  policy.act(made[0].reset().observation, 0.0)
  action = policy.act(made[0].reset().observation, 0.0)
  made[0].action_spec().validate(action)
  for found in (policy.spec.observations, made[0].observation_spec()):
    assert type(found) is dict
    assert type(found['a']) is list
    assert type(found['a'][1]) is dict
    assert type(found['a'][1]['b'][1]) is list
  policy.export_saved_model(str(tmp_path / 'model'))


def _actions_of(experiment):
  return experiment.environment_factory(0).action_spec()


def test_rows_are_like_single_ones(tmp_path):
  policy, single = load('r2d2', tmp_path), load('r2d2', tmp_path)
  random = np.random.default_rng(3)
  observations = trained_agents.draw(policy.spec.observations, random, 6, 2)
  rewards = random.normal(size=[6, 2])
  found = []
  for t in range(6):
    if t == 3:  # An episode begins in row 1.
      policy.reset([1])
    observation = tree.map_structure(lambda x, t=t: x[t], observations)
    found.append(policy.act(observation, rewards[t]))
  for row, begin in ((0, 0), (1, 3)):
    single.reset()
    for t in range(begin, 6):
      observation = tree.map_structure(
        lambda x, t=t, row=row: x[t, row], observations
      )
      action = single.act(observation, rewards[t, row])
      np.testing.assert_allclose(action, found[t][row], atol=1e-5)


def test_describes_itself(tmp_path):
  policy = load('r2d2', tmp_path)
  assert policy.agent == 'own agent'
  assert policy.environment == 'own environment'
  assert policy.steps == trained_agents.STEPS
  assert policy.learner_steps == trained_agents.LEARNER_STEPS
  assert policy.checkpoint == str(tmp_path / 'checkpoints' / '00000001')
  # Not with what is observed besides.
  assert policy.spec.observations.shape == (3,)
  assert policy.has_memory
  assert 'after 60 steps and 7 updates' in repr(policy)
  assert not load('sac', tmp_path / 'sac').has_memory


def test_explores_as_in_training(tmp_path):
  settings = {'epsilon_anneal_steps': 2 * trained_agents.STEPS}
  greedy = load('dqn', tmp_path, **settings)
  # Half of the way from 1 to the ladder 0.4, 0.4^8: ε is 0.7 and 0.5.
  exploring = load('dqn', tmp_path, explore=True, **settings)
  observation = trained_agents.draw(
    greedy.spec.observations, np.random.default_rng(0), 400
  )
  differ = greedy.act(observation) != exploring.act(observation)
  # Of random actions one in three is the greedy one.
  assert differ[::2].mean() == pytest.approx(0.7 * 2 / 3, abs=0.1)
  assert differ[1::2].mean() == pytest.approx(0.5 * 2 / 3, abs=0.1)
  assert (exploring.act(observation) != exploring.act(observation)).any()


class TestRefusals:
  def refuse(self, policy, observation, *words, reward=None):
    first, *others = words
    with pytest.raises(ValueError, match=re.escape(first)) as info:
      policy.act(observation, reward)
    for word in others:
      assert word in str(info.value)

  def test_observations_that_do_not_fit(self, tmp_path):
    policy = load('impala', tmp_path)
    eye, arm = np.zeros([10, 10, 2], np.uint8), np.zeros([3], np.float32)
    for kind in (np.float64, np.int32):
      policy.act({'eye': eye, 'arm': arm.astype(kind)})
    policy.reset()
    for observation, words in (
      (eye, ['observation: expected a mapping', "'eye'", 'ndarray']),
      ({'eye': eye}, ["the keys ['eye', 'arm']", "found a mapping"]),
      (
        {'eye': eye, 'arm': np.zeros([4])},
        ["observation['arm']: expected an array of shape (3,)", '(4,)',
         'here (B, 3)'],
      ),
      (
        {'eye': eye.astype(np.float32), 'arm': arm},
        ["observation['eye']:", 'dtype uint8', 'dtype float32'],
      ),
      (
        {'eye': eye[None], 'arm': np.zeros([2, 3], np.float32)},
        ["observation['arm']: expected an array of shape (1, 3)",
         'found shape (2, 3)'],
      ),
      ({'eye': eye[None][:0], 'arm': arm[None][:0]}, ['at least one row']),
      ({'eye': eye, 'arm': [0.0, 0.0, 0.0]}, ["observation['arm']:", 'nest']),
    ):  # fmt: skip
      self.refuse(policy, observation, *words)

  def test_integers_out_of_range(self, tmp_path):
    kind = specs.DiscreteArray(3, np.int32)
    experiment = trained_agents.make_experiment('dqn', tmp_path)
    made = trained_agents.Environment({'kind': kind}, _actions_of(experiment))
    experiment = dataclasses.replace(
      experiment, environment_factory=lambda seed: made
    )
    trained_agents.write_checkpoint(experiment)
    policy = launch.load_policy(experiment)
    policy.act({'kind': np.array([0, 2])})
    words = "observation['kind']: expected integers from 0 to 2, found 3"
    self.refuse(policy, {'kind': np.array([0, 3])}, f'{words} in row 1')
    self.refuse(policy, {'kind': 3}, f'{words} in row 0')

  def test_other_rows_of_a_memory(self, tmp_path):
    policy = load('r2d2', tmp_path)
    policy.act(np.zeros([2, 3], np.float32))
    other = np.zeros([3, 3], np.float32)
    self.refuse(policy, other, 'expected 2 rows', 'found 3', '`reset`')
    policy.reset()
    policy.act(other)
    memoryless = load('sac', tmp_path / 'sac')
    for size in (2, 5, 1):
      assert memoryless.act(np.zeros([size, 3], np.float32)).shape == (size, 2)

  def test_rewards(self, tmp_path):
    policy = load('r2d2', tmp_path)
    observation = np.zeros([2, 3], np.float32)
    policy.act(observation)
    self.refuse(policy, observation, 'reward: expected', 'found none')
    self.refuse(policy, observation, 'shape (2,)', reward=1.0)
    self.refuse(policy, observation, 'shape (2,)', reward=np.ones([3]))
    policy.act(observation, np.ones([2]))

  def test_rows_to_reset(self, tmp_path):
    policy = load('sac', tmp_path)
    policy.act(np.zeros([2, 3], np.float32))
    for rows in ([2], [0.5], np.ones([3], bool), 'ab'):
      with pytest.raises(ValueError, match='rows: expected indices below 2'):
        policy.reset(rows)
    with pytest.raises(ValueError, match='path must be a new folder, or an em'):
      policy.export_saved_model(str(tmp_path))
    policy.reset([])
    policy.reset(np.array([True, False]))

  def test_directories_without_a_policy(self, tmp_path):
    experiment = trained_agents.make_experiment('sac', tmp_path)
    with pytest.raises(ValueError, match='must hold a checkpoint'):
      launch.load_policy(experiment)
    trained_agents.write_checkpoint(experiment)
    with pytest.raises(ValueError, match='must hold the policy of an eval'):
      launch.load_policy(experiment, best=True)
    # By the directory alone only what is known by name.
    with pytest.raises(ValueError, match="'own agent'"):
      launch.load_policy(tmp_path)
    with pytest.raises(
      ValueError, match=r'run must be the directory of .*got 3'
    ):
      launch.load_policy(3)  # pyright: ignore[reportArgumentType]
    other = trained_agents.make_experiment('ppo', tmp_path)
    with pytest.raises(ValueError, match='of another experiment'):
      launch.load_policy(other)
