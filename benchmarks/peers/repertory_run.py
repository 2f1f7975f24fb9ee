"""Training with Repertory, in the topology `single` by default.

With `one_by_one`, environments are stepped in a loop, as by the `DummyVecEnv`
of Stable-Baselines3, and not as arrays. With `final_seeds`, the policy is
evaluated during the run and at its end. With `reports_returns`, the returns of
training are reported. `network` is the import path of a function that replaces
the builder's `make_network`.
"""

import dataclasses
import json
import pkgutil
import sys
import tempfile

import final_evaluation
import numpy as np
import reports

from repertory import launch
from repertory.environments.batches import batch
from repertory.environments.registry import registry
from repertory.launch.experiments import callbacks


class _OneByOne(registry.EnvironmentFactory):
  """Makes a loop over environments: only the class itself is vectorized."""

  def __call__(self, seed):
    return super().__call__(seed)


class _SeededEvaluations:
  """Makes evaluation environments with given seeds, stepped in a loop."""

  def __init__(self, name, seeds):
    self._make = registry.EnvironmentFactory(name)
    self._seeds = seeds

  def __call__(self, seed):
    return self._make(seed)

  def make_batch(self, seeds):
    chosen = self._seeds[: len(seeds)]
    return batch.EnvironmentBatch([self._make(seed) for seed in chosen])


class _EvaluationReports(callbacks.Callback):
  """Reports each evaluation during the run."""

  def __init__(self, report):
    self._report = report

  def on_evaluation(self, evaluation):
    self._report.add_evaluation(evaluation.steps, evaluation.mean_return)


class _TrainingReturns(callbacks.Callback):
  """Collects the returns of training, and processor time."""

  def __init__(self, report):
    self._report = report
    self._ends, self._returns, self._times = [], [], [(0, 0.0)]

  def on_episodes(self, episodes):
    start, num_episodes = self._times[-1][0], len(episodes.returns)
    # They come in the order of their ends.
    ends = np.linspace(start, episodes.steps, num_episodes + 1)[1:]
    self._ends += ends.tolist()
    self._returns += episodes.returns.tolist()
    self._times.append((episodes.steps, self._report.cpu_seconds()))

  def write(self, steps):
    """Reports them at the end of the run."""
    times = [*self._times, (steps, self._report.cpu_seconds())]
    self._report.write_training_returns(self._ends, self._returns, times)


def _make_settings(case, report, training_returns):
  """Returns settings of a run with a preset and evaluations, or without."""
  if 'preset' not in case:
    return {
      'environments_per_actor': case['environments'],
      'evaluation_episodes': 0,
      'callbacks': [training_returns] if case.get('reports_returns') else [],
    }
  return {
    'preset': case['preset'],
    'evaluation_episodes': case['evaluation_episodes'],
    'evaluation_period': case['evaluation_period'],
    'evaluation_environment_factory': _SeededEvaluations(
      case['environment'], case['evaluation_seeds']
    ),
    'callbacks': [_EvaluationReports(report)],
  }


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
  training_returns = _TrainingReturns(report)
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
      checkpoint_replay=False,
      **_make_settings(case, report, training_returns),
    )
    if case.get('one_by_one'):
      factory = _OneByOne(case['environment'])
      experiment = dataclasses.replace(experiment, environment_factory=factory)
    if 'network' in case:
      experiment.builder.make_network = pkgutil.resolve_name(case['network'])
    _report_first_update(experiment.builder, report)
    topology = case.get('topology', 'single')
    launch_type = 'local_mp' if topology == 'distributed' else 'local_mt'
    result = launch.run(experiment, topology, launch_type, display=False)
    report.write(steps=result.status.steps)
    if case.get('reports_returns'):
      training_returns.write(result.status.steps)
    if 'final_seeds' in case:
      act = launch.load_policy(directory).act
      name = case['environment'].partition(':')[2]
      returns = final_evaluation.evaluate(act, name, case['final_seeds'])
      report.write(returns=returns)


if __name__ == '__main__':
  main()
