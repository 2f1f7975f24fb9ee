"""Training with Repertory in one process, as with the peers' scripts.

With `one_by_one`, environments are stepped in a loop, as by the `DummyVecEnv`
of Stable-Baselines3, and not as arrays.
"""

import dataclasses
import json
import signal
import sys
import tempfile

import reports

from repertory import launch
from repertory.components.actors import environment_loop
from repertory.environments.registry import registry


class _OneByOne(registry.EnvironmentFactory):
  """Makes a loop over environments: only the class itself is vectorized."""

  def __call__(self, seed):
    return super().__call__(seed)


def _report_first_update(builder, report):
  """Makes the learner report the time of its first update."""
  make = builder.make_learner

  def make_learner(*args, **kwargs):
    learner = make(*args, **kwargs)
    report.tell_first_update(learner, 'step')
    return learner

  builder.make_learner = make_learner


def _report_solved(threshold, report):
  """Excludes evaluations from the costs; ends the run when it is solved."""
  run_episodes = environment_loop.EnvironmentLoop.run_episodes

  def run(self, *args, **kwargs):
    with report.left_out():
      episodes = run_episodes(self, *args, **kwargs)
    mean = sum(one.episode_return for one in episodes) / max(1, len(episodes))
    if episodes and mean >= threshold:
      report.write(solved=report.costs(), mean=mean)
      signal.raise_signal(signal.SIGINT)  # Stops the run like Ctrl-C.
    return episodes

  environment_loop.EnvironmentLoop.run_episodes = run


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  solve = case.get('solve')
  with tempfile.TemporaryDirectory() as directory:
    experiment = launch.make_experiment(
      case['agent'],
      case['environment'],
      max_steps=case['steps'],
      config={
        name: tuple(value) if isinstance(value, list) else value
        for name, value in case['settings'].items()
      },
      directory=directory,
      seed=case['seed'],
      environments_per_actor=case['environments'],
      evaluation_episodes=solve['episodes'] if solve else 0,
      evaluation_period=solve['period'] if solve else None,
      checkpoint_replay=False,
    )
    if case['one_by_one']:
      factory = _OneByOne(case['environment'])
      experiment = dataclasses.replace(experiment, environment_factory=factory)
    _report_first_update(experiment.builder, report)
    if solve:
      _report_solved(solve['threshold'], report)
    result = launch.run(experiment, case['topology'], display=False)
  report.write(steps=result.status.steps)


if __name__ == '__main__':
  main()
