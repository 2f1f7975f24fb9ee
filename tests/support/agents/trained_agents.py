"""Runs of all agents with untrained networks."""

import dm_env
import numpy as np
import tree

from repertory import launch
from repertory.agents.interface import registry
from repertory.components import learners, specs
from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import (
  environment_batches,
  policy_description,
)
from support.agents import known_agents

STEPS, LEARNER_STEPS = 60, 7

_VECTOR = specs.Array((3,), np.float32)
_IMAGE = specs.BoundedArray((10, 10, 2), np.uint8, 0, 255)
_DISCRETE = specs.DiscreteArray(3)
_CONTINUOUS = specs.BoundedArray((2,), np.float32, [-1, 0], [1, 5])
_LENGTH = 6

# By agent: observations, if no vector, and settings.
_OWN = {
  'd4pg': (_IMAGE, {'image_torso': 'minatar'}),
  'dqn': (_IMAGE, {'image_torso': 'minatar'}),
  'impala': (
    {'eye': _IMAGE, 'arm': _VECTOR},
    {'image_torso': 'minatar', 'core': 'lstm', 'core_size': 5},
  ),
  'ppo': (_VECTOR, {'normalize_observations': True}),
  'r2d2': (_VECTOR, {'core_size': 5}),
  'td3': (_VECTOR, {'normalize_observations': True}),
  'vmpo': (
    _VECTOR,
    {'core': 'gtrxl', 'core_size': 4, 'core_heads': 2, 'core_window': 3},
  ),
}


class Environment(dm_env.Environment):
  """Environment whose rewards depend on actions, and observations do not."""

  def __init__(self, observations, actions):
    self._observations, self._actions = observations, actions
    self._random = np.random.default_rng(5)
    self._time = 0

  def reset(self):
    self._random, self._time = np.random.default_rng(5), 0
    return dm_env.restart(self._observe())

  def step(self, action):
    self._time += 1
    reward = float(self._time * np.sum(action))
    if self._time < _LENGTH:
      return dm_env.transition(reward, self._observe())
    return dm_env.termination(reward, self._observe())

  def observation_spec(self):
    return self._observations

  def action_spec(self):
    return self._actions

  def _observe(self):
    return draw(self._observations, self._random)


def draw(nested_spec, random, *leading):
  """Samples observations of a spec."""

  def draw_leaf(spec):
    shape = (*leading, *spec.shape)
    if spec.dtype.kind == 'f':
      return random.normal(size=shape).astype(spec.dtype)
    return random.integers(0, 256, shape).astype(spec.dtype)

  return tree.map_structure(draw_leaf, nested_spec)


def make_experiment(agent, directory, **settings):
  observations, own = _OWN.get(agent, (_VECTOR, {}))
  continuous = 'continuous' in known_agents.AGENTS[agent].actions
  actions = _CONTINUOUS if continuous else _DISCRETE
  builder = registry.make_builder(
    agent, {'hidden_sizes': (6,), 'jit_compile': False, **own, **settings}
  )
  return launch.Experiment(
    builder,
    lambda seed: Environment(observations, actions),
    max_steps=1,
    directory=str(directory),
    environments_per_actor=2,
  )


def write_checkpoint(experiment):
  """Writes a checkpoint of a random but reproducible policy."""
  spec = environment_batches.find_spec(experiment)
  network = experiment.builder.make_network(spec)
  random = np.random.default_rng(1)
  for variable in network.variables:
    drawn = random.normal(size=variable.shape)
    variable.assign(drawn if variable.trainable else np.abs(drawn))
  arrays = learners.save_exported('policy', network.variables, LEARNER_STEPS)
  state = {
    'experiment': experiment.identity(),
    'counts': {'steps': STEPS, 'learner_steps': LEARNER_STEPS, 'runs': 1},
  }
  folder = f'{experiment.directory}/checkpoints'
  policy = policy_description.describe(state, spec, 'in_process')
  return checkpointing.Checkpointer(folder).save(arrays, state, policy=policy)
