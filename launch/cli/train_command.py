"""`repertory train`: trains an agent."""

import os
import signal
import sys

from repertory import launch
from repertory.components.config import settings as settings_lib
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.platform import interrupts, terminal
from repertory.launch.sweeps import manifest


@command.register(
  'train',
  0,
  '--agent=AGENT --env=ENVIRONMENT --steps=N [--flags] [--config.NAME=VALUE]',
  'Trains an agent, or resumes the run in its directory.',
  flag_tables.TRAIN_FLAGS,
  groups=flag_tables.TRAIN_GROUPS,
  takes_settings=True,
)
def _train(values, settings, positional) -> int:
  del positional
  _check_is_no_sweep(values.directory)
  topology, launch_type = factory.make_layout(values)
  launch_type.prepare()
  if preset := factory.describe_preset(values, settings):
    print(preset, flush=True)
  with terminal.saying('importing TensorFlow'):
    experiment = factory.make_experiment(values, settings)
    with interrupts.exiting_on_interrupt():
      run_experiment = launch.opening.run.run
  try:
    result = run_experiment(
      experiment,
      topology=topology,
      launch_type=launch_type,
      fresh=values.fresh,
    )
  except launch.NodeError:
    print(f'Logs:        {experiment.directory}/logs')
    raise
  return _report_end(experiment, result)


def _report_end(
  experiment: 'launch.Experiment', result: 'launch.Result'
) -> int:
  """Prints the result of a run; returns the exit code."""
  status = result.status
  if result.interrupted == signal.SIGHUP:
    terminal.let_go()  # Otherwise printing would fail.
  if result.interrupted and not status.steps:
    print('Interrupted before the first step; the same command starts afresh.')
    return interrupts.EXIT_BASE + result.interrupted
  if result.interrupted:
    without = ''
    if experiment.deterministic and not result.resumes_exactly:
      without = ' without --deterministic'
    print(
      f'Interrupted; the same command{without} resumes from the checkpoint.'
    )
  elif status.evaluation_return is not None:
    print(
      f'Mean return of the last evaluation: {status.evaluation_return:.4g} '
      f'({command.count_episodes(experiment.evaluation_episodes)})'
    )
  if result.stopped_early and not result.interrupted:
    print(f'Stopped early: {result.stopped_early}.')
  if result.why_no_update:
    print(f'repertory: {result.why_no_update}', file=sys.stderr)
  if result.best is not None:
    print(
      f'Best evaluation: {status.best_return:.4g}, after {status.best_steps:,} '
      f'steps; `repertory evaluate {result.directory} --best` uses its policy'
    )
  print(f'Logs:        {result.directory}/logs')
  print(f'Checkpoints: {result.directory}/checkpoints')
  if result.variables_sha256 is not None:
    print(f'Variables: sha256 {result.variables_sha256}')
  problems = [result.not_saved, result.not_stored, result.not_recorded]
  problems = list(filter(None, problems))
  for problem in problems:
    print(f'repertory: {problem}', file=sys.stderr)
  if result.interrupted:
    return interrupts.EXIT_BASE + result.interrupted
  return command.NOT_SAVED if problems else command.DONE


def _check_is_no_sweep(directory: str | None) -> None:
  """Raises for the directory of a sweep, whose runs would become hidden."""
  if directory and os.path.lexists(os.path.join(directory, manifest.FILE)):
    raise settings_lib.SettingError(
      'directory',
      f'must be that of a run, or a new one, got {directory}, which is that of '
      'a sweep: `repertory sweep` resumes it.',
    )
