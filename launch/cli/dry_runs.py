"""Tries environments and networks of a sweep's runs before it begins."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from absl import flags

from repertory import launch
from repertory.components.runtime import signals
from repertory.launch.cli import command, errors, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.platform import child_processes

_SECONDS_EACH = 600.0  # Making an environment may take 300 s, a network less.


def find_refused(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Plans runs in a new process, as this one has no TensorFlow.

  Returns the index of the first arguments that `train` would reject, and its
  message; or None.
  """
  seconds = _SECONDS_EACH * len(argument_lists)
  paths = os.pathsep.join(child_processes.import_paths())
  try:
    ended = subprocess.run(
      child_processes.command_of(main, str(os.getpid())),
      env={**os.environ, 'PYTHONPATH': paths},
      input=json.dumps(argument_lists).encode(),
      capture_output=True,
      timeout=seconds,
    )
  except subprocess.TimeoutExpired as error:
    raise signals.NoAnswerError(
      f'Waited {seconds:g} seconds for environments and networks to be made.'
    ) from error
  if ended.returncode:
    raise signals.NoAnswerError(
      'Trying environments and networks failed:\n'
      + ended.stderr.decode(errors='replace').strip()
    )
  return json.loads(ended.stdout)


def main() -> None:
  """Serves `find_refused`: reads JSON from stdin, writes JSON to stdout."""
  child_processes.stop_with(int(sys.argv[1]))
  answer = os.dup(1)
  os.dup2(2, 1)  # Keeps output of libraries out of the answer.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  refused = plan_all(json.load(sys.stdin))
  os.write(answer, json.dumps(refused).encode())


def plan_all(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Implements `find_refused` in this process."""
  for index, arguments in enumerate(argument_lists):
    values = command.define_flags(flag_tables.TRAIN_FLAGS)
    try:
      settings, _ = command.read_arguments('repertory', arguments, values)
      topology, launcher = factory.make_layout(values)
      experiment = factory.make_experiment(values, settings)
      launch.opening.plan.make_plan(experiment, topology, launcher)
    except (ValueError, ImportError, TimeoutError, flags.Error) as error:
      return index, errors.describe(error, values)
  return None
