"""Training with Repertory, in the topology `single` by default.

With `one_by_one`, environments are stepped in a loop, as by the `DummyVecEnv`
of Stable-Baselines3, and not as arrays.
"""

import dataclasses
import json
import sys
import tempfile

import reports

from repertory import launch
from repertory.environments.registry import registry
from repertory.launch.experiments import callbacks


class _OneByOne(registry.EnvironmentFactory):
  """Makes a loop over environments: only the class itself is vectorized."""

  def __call__(self, seed):
    return super().__call__(seed)


def _report_first_update(builder, report):
  """Makes the learner report the time of its first update."""
  make = builder.make_learner

  def make_learner(*args, **kwargs):
    learner = make(*args, **kwargs)
    report.report_first_update(learner, 'step')
    return learner

  builder.make_learner = make_learner


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
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
      num_actors=case.get('num_actors', 1),
      environments_per_actor=case['environments'],
      evaluation_episodes=case.get('evaluation_episodes', 0),
      evaluation_period=case.get('evaluation_period'),
      checkpoint_replay=False,
    )
    if 'solved_at' in case:
      stop_when = callbacks.StopAtReturn(case['solved_at'])
      experiment = dataclasses.replace(experiment, stop_when=stop_when)
    if case.get('one_by_one'):
      factory = _OneByOne(case['environment'])
      experiment = dataclasses.replace(experiment, environment_factory=factory)
    _report_first_update(experiment.builder, report)
    topology = case.get('topology', 'single')
    launch_type = 'local_mp' if topology == 'distributed' else 'local_mt'
    result = launch.run(experiment, topology, launch_type, display=False)
  report.write(steps=result.status.steps, solved=bool(result.stopped_early))


if __name__ == '__main__':
  main()
