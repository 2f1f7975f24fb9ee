"""Numbered episodes, as batches and as files."""

import dm_env
import numpy as np
from dm_env import specs as dm_env_specs

from repertory.components import offline, specs
from repertory.environments.registry import registry
from repertory.launch.experiments import environment_batches

FIRST, MID, LAST = (int(one) for one in dm_env.StepType)

# Observations encode episode and step, actions the step.
SPEC = specs.EnvironmentSpec(
  observations=dm_env_specs.Array((2,), np.float32),
  actions=dm_env_specs.BoundedArray((), np.int32, 0, 99),
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)


def timesteps(slots):
  """Yields batches of timesteps `[B]` and the actions that led there.

  Args:
    slots: Lists of (episode, length, terminates) for each slot. A slot without
      further episodes plays an endless one, which is not compared.
  """
  streams = [_play(episodes) for episodes in slots]
  action = None
  while True:
    moments = [next(stream) for stream in streams]
    step_type, reward, discount, observation, acted = map(
      np.array, zip(*moments)
    )
    timestep = dm_env.TimeStep(
      step_type.astype(np.int32),
      reward.astype(np.float32),
      discount.astype(np.float32),
      observation.astype(np.float32),
    )
    yield action, timestep
    action = acted.astype(np.int32)


def _play(episodes):
  """Yields step type, reward, discount, observation and action."""
  for episode, length, terminates in episodes:
    for t in range(length + 1):
      step_type = FIRST if t == 0 else LAST if t == length else MID
      reward = 10 * episode + t if t else 0
      discount = 0 if terminates and t == length else 1
      yield step_type, reward, discount, (episode, t), t


def expected(episode, length, terminates=False, last=LAST):
  """Returns expected rows of step type, reward, discount, episode and step."""
  return [
    [
      FIRST if t == 0 else last if t == length else MID,
      10 * episode + t if t else 0,
      0 if terminates and t == length else 1,
      episode,
      t,
    ]
    for t in range(length + 1)
  ]


def rows(steps):
  """Returns the rows of recorded steps, like `expected`."""
  columns = [steps.step_type, steps.reward, steps.discount]
  return np.stack([*columns, *steps.observation.T], axis=1).tolist()


def prepare(directory, spec=SPEC, agent='nobody', environment='numbers'):
  """Makes the folder of a recording; returns it as a string."""
  manifest = offline.RecordingManifest.of(agent, environment, spec, 'test')
  offline.prepare(str(directory), manifest)
  return str(directory)


def play_randomly(directory, environment, num_steps, num_slots=2, seed=0):
  """Records a number of random discrete actions; returns the spec."""
  random = np.random.default_rng(seed)

  def act(observation, spec):
    del observation
    return random.integers(spec.num_values, size=num_slots)

  return play(directory, environment, act, num_steps, num_slots, seed, 'random')


def play(
  directory, environment, act, num_steps, num_slots=1, seed=0, agent='script'
):
  """Records a number of steps; returns the spec.

  Args:
    directory: Folder of the recording.
    environment: Name of the environment.
    act: Function from observations `[B, ...]` and the action spec to actions.
    num_steps: Number of steps of each slot.
    num_slots: Number of slots B.
    seed: Seed of the first slot; the others have the next ones.
    agent: Name of the agent in the manifest.
  """
  factory = registry.make_factory(environment)
  batch = environment_batches.EnvironmentSettings(
    factory, False, record=str(directory)
  ).make_environments(range(seed, seed + num_slots))
  spec = specs.make_environment_spec(batch)
  prepare(directory, spec, agent, environment)
  observation = batch.reset().observation
  for _ in range(num_steps // num_slots):
    actions = act(observation, spec.actions).astype(spec.actions.dtype)
    observation = batch.step(actions).observation
  batch.close()
  return spec


def write(directory, slots, num_steps, **settings):
  """Records a number of steps of all slots; returns the open writer."""
  writer = offline.RecordingWriter(prepare(directory), 'steps', **settings)
  stream = timesteps(slots)
  writer.begin(next(stream)[1])
  for _ in range(num_steps):
    writer.add(*next(stream))
  return writer
