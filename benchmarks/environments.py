"""Overhead of environment batches, compared with each family's own loop.

Prints, for each family and batch size, the environment steps per second of the
family's own loop, those of Repertory's batch, and its overhead. The two
alternate in short slices and adjacent slices are compared, so that other load
slows both; the overhead is the median. Actions are drawn beforehand.

The own loop is the family's vector environment where it has one (Gymnasium's
`SyncVectorEnv`, or that of CartPole, ALE's, EnvPool's). Otherwise each
environment is stepped and reset at its end, and the results are stacked into
arrays, but neither converted nor checked.

  python benchmarks/environments.py [--seconds=3] [--only=atari]
"""

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import tree
from absl import app, flags

from repertory.environments.registry import registry

_SECONDS = flags.DEFINE_float(
  'seconds', 2, 'Seconds per row and loop.', lower_bound=0.2
)
_ONLY = flags.DEFINE_string('only', '', 'Only names that contain this.')
_SIZES = flags.DEFINE_list('sizes', ['1', '16'], 'Batch sizes.')

# A short cycle of actions would leave some grid worlds in costly corners.
_NUM_ACTIONS = 1024
# As short as other load on the machine, and long enough for the clock.
_TURN_SECONDS = 0.02
_NUM_WARM_UP_TURNS = 10

Step = Callable[[int], object]
# Results of each environment.
Loop = Callable[[int], Iterator[tuple]]


def main(_):
  print(f'{"name":42}{"B":>4}{"own/s":>10}{"ours/s":>10}{"overhead":>10}')
  for name, make_own in OWN_LOOPS:
    if _ONLY.value not in name:
      continue
    for size in map(int, _SIZES.value):
      rates = measure(name.partition(' ')[0], make_own, size)
      own, ours = np.median(rates, axis=1)
      overhead = f'{100 * (np.median(rates[0] / rates[1]) - 1):.0f} %'
      print(f'{name:42}{size:4}{own:10.0f}{ours:10.0f}{overhead:>10}')


def measure(name: str, make_own, size: int) -> np.ndarray:
  """Returns the environment steps per second of both, `[2, slices]`."""
  batch = registry.make_factory(name).make_batch(list(range(size)))
  actions = _draw(batch.action_spec(), size)
  own = make_own(name, size, actions)
  batch.reset()

  def ours(i):
    batch.step(actions[i])

  # Each slice continues where the last one ended.
  cases = [(step, itertools.cycle(range(_NUM_ACTIONS))) for step in (own, ours)]
  num_turns = round(_SECONDS.value / _TURN_SECONDS)
  rates = [
    [size * _rate(step, indices, _TURN_SECONDS) for step, indices in cases]
    for _ in range(num_turns + _NUM_WARM_UP_TURNS)
  ]
  batch.close()
  return np.transpose(rates[_NUM_WARM_UP_TURNS:])


def _rate(step: Step, indices: Iterator[int], seconds: float) -> float:
  start = time.perf_counter()
  num_steps = 0
  while (elapsed := time.perf_counter() - start) < seconds:
    step(next(indices))
    num_steps += 1
  return num_steps / elapsed


def _draw(spec, size: int) -> list:
  random = np.random.default_rng(0)

  def sample(leaf):
    shape = (size, *leaf.shape)
    if leaf.dtype.kind == 'i':
      actions = random.integers(leaf.minimum, leaf.maximum + 1, shape)
    else:
      actions = random.uniform(leaf.minimum, leaf.maximum, shape)
    return actions.astype(leaf.dtype)

  return [tree.map_structure(sample, spec) for _ in range(_NUM_ACTIONS)]


def _id(name: str) -> str:
  return name.partition(':')[2]


def _gymnasium_vector(mode):
  def make(name, size, actions) -> Step:
    import gymnasium  # noqa: PLC0415 - an extra.

    envs = gymnasium.make_vec(_id(name), size, vectorization_mode=mode)
    envs.reset(seed=0)
    dtype = envs.single_action_space.dtype
    wide = [action.astype(dtype) for action in actions]

    def step(i):
      envs.step(wide[i])

    return step

  return make


def _gymnasium_loop(name, size, actions) -> Loop:
  import gymnasium  # noqa: PLC0415 - an extra.

  if name.startswith('minigrid:'):
    import minigrid  # noqa: F401, PLC0415 - an extra, registers ids.
  envs = [
    gymnasium.make(_id(name), disable_env_checker=True) for _ in range(size)
  ]
  for seed, env in enumerate(envs):
    env.reset(seed=seed)
  dtype = envs[0].action_space.dtype
  rows = [list(action.astype(dtype)) for action in actions]

  def step(i):
    for env, action in zip(envs, rows[i]):
      observation, reward, terminated, truncated, _ = env.step(action)
      if terminated or truncated:
        env.reset()
      if isinstance(observation, dict):
        observation = observation['image']
      yield observation, reward, terminated, truncated

  return step


def _atari(name, size, actions) -> Step:
  import ale_py  # noqa: PLC0415 - an extra.

  envs = ale_py.AtariVectorEnv(
    _id(name).lower(), size, reward_clipping=False, use_fire_reset=False
  )
  envs.reset(seed=0)

  def step(i):
    envs.step(actions[i])

  return step


def _envpool(name, size, actions) -> Step:
  import envpool  # noqa: PLC0415 - an extra.

  pool = envpool.make_gymnasium(_id(name), num_envs=size)
  pool.reset()

  def step(i):
    pool.step(actions[i])

  return step


def _dm_env_loop(make_environment):
  def make(name, size, actions) -> Loop:
    environments = [make_environment(_id(name), seed) for seed in range(size)]
    for environment in environments:
      environment.reset()
    rows = [list(action) for action in actions]

    def step(i):
      for environment, action in zip(environments, rows[i]):
        step_type, reward, discount, observation = environment.step(action)
        if isinstance(observation, dict):
          observation = observation['observations']
        # None with FIRST.
        yield observation, reward or 0.0, discount or 0.0, int(step_type)

    return step

  return make


def _make_dm_control(task, seed):
  from dm_control import suite  # noqa: PLC0415 - an extra.

  return suite.load(
    *task.split('/'),
    task_kwargs={'random': seed},
    environment_kwargs={'flat_observation': True},
  )


def _make_bsuite(bsuite_id, seed):
  del seed
  from bsuite import bsuite  # noqa: PLC0415 - an extra.

  return bsuite.load_from_id(bsuite_id)


def _minatar(name, size, actions) -> Loop:
  import minatar  # noqa: PLC0415 - an extra.

  games = [minatar.Environment(_id(name)) for _ in range(size)]
  rows = [list(action) for action in actions]

  def step(i):
    for game, action in zip(games, rows[i]):
      reward, ended = game.act(action)
      if ended:
        game.reset()
      yield game.state(), reward, ended

  return step


def _gathered(make_loop):
  """Steps and stacks arrays `[B, ...]`, but converts and checks nothing."""

  def make(name, size, actions) -> Step:
    loop = make_loop(name, size, actions)
    return lambda i: [np.array(column) for column in zip(*loop(i))]

  return make


_LOOPS = (
  ('gym:CartPole-v1', _gymnasium_loop),
  ('dm_control:cheetah/run', _dm_env_loop(_make_dm_control)),
  ('dm_control:cartpole/swingup', _dm_env_loop(_make_dm_control)),
  ('bsuite:catch/0', _dm_env_loop(_make_bsuite)),
  ('bsuite:mountain_car/0', _dm_env_loop(_make_bsuite)),
  ('minigrid:MiniGrid-DoorKey-5x5-v0', _gymnasium_loop),
  ('minatar:breakout', _minatar),
  ('minatar:seaquest', _minatar),
)

OWN_LOOPS = (
  ('gym:CartPole-v1 (vector)', _gymnasium_vector('vector_entry_point')),
  ('gym:CartPole-v1 (sync)', _gymnasium_vector('sync')),
  ('gym:Acrobot-v1 (sync)', _gymnasium_vector('sync')),
  ('gym:MountainCar-v0 (sync)', _gymnasium_vector('sync')),
  ('atari:Pong', _atari),
  ('envpool:CartPole-v1', _envpool),
  ('envpool:HalfCheetah-v4', _envpool),
  ('envpool:Pong-v5', _envpool),
  *((name, _gathered(loop)) for name, loop in _LOOPS),
)


if __name__ == '__main__':
  app.run(main)
