"""Speed of gossip learners compared with one learner, at equal environments.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/gossip.py

Each case is trained by `single` and by 1, 2 and 4 learners of `gossip`, in
their own processes, round after round, as in `podracer.py`. The table shows
environment steps per second of processor time, over all processes, and per
second, and their ratios to `single` in the same round.
"""

import repertory  # noqa: F401  Before TensorFlow: see its first lines.

# isort: split
import podracer
from absl import app

_LEARNERS = (1, 2, 4)
_PROCESSES = '--topology=gossip --lp_launch_type=local_mp'


def _by(steps: tuple[int, int]) -> dict[str, tuple[int, int]]:
  """Returns the topologies of a case, with the steps of both runs."""
  names = ['--topology=single']
  names += [f'{_PROCESSES} --num_learners={n}' for n in _LEARNERS]
  return dict.fromkeys(names, steps)


_IMPALA = '--agent=impala --environments_per_actor=16 --num_actors=4 '
CASES = (
  podracer.Case(
    'cartpole',
    'IMPALA CartPole, 64 environments',
    _IMPALA + '--env=gym:CartPole-v1',
    _by((100_000, 500_000)),
  ),
  podracer.Case(
    'ppo',
    'PPO CartPole, 64 environments',
    '--agent=ppo --environments_per_actor=16 --num_actors=4 '
    '--config.unroll_length=32 --env=gym:CartPole-v1',
    _by((100_000, 500_000)),
  ),
  podracer.Case(
    'breakout',
    'IMPALA MinAtar Breakout, 64 environments',
    _IMPALA + '--env=minatar:breakout --preset=minatar',
    _by((50_000, 250_000)),
  ),
)


def main(_):
  podracer.print_cases(CASES)


if __name__ == '__main__':
  app.run(main)
