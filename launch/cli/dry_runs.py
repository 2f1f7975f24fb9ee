"""Checks arguments of `train` before anything starts."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any

from absl import flags

from repertory import launch
from repertory.agents.reward_models import reward_model_config
from repertory.components.runtime import signals
from repertory.launch.cli import command, errors, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.sweeps import sweep

_SECONDS_EACH = 600.0  # Making an environment may take 300 s, a network less.

_BAD_INPUT = (ValueError, ImportError, flags.Error)


def read_settings(
  arguments: Sequence[str], left_out: Collection[str]
) -> dict[str, Any]:
  """Returns the settings of arguments of `train`, without TensorFlow.

  Names are those of flags, such as `config.<name>`. Raises ValueError if
  `train` would reject them, as far as that shows without TensorFlow.
  """
  values = command.define_flags(flag_tables.TRAIN_FLAGS)
  try:
    settings = _parse(arguments, values)
    factory.make_layout(values)
    plan = factory.plan_experiment(values, settings)
  except _BAD_INPUT as error:
    raise ValueError(errors.describe(error, values)) from error
  found = {name: values[name].value for name in values if name not in left_out}
  for name, value in dataclasses.asdict(plan.config).items():
    found[f'config.{name}'] = value
  if plan.reward_model_config is not None:
    for name, value in dataclasses.asdict(plan.reward_model_config).items():
      found[reward_model_config.PREFIX + name] = value
  # Converts values as a file would.
  return json.loads(json.dumps(found, default=repr))


def find_refused(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Runs smoke tests of runs in a new process, as this has no TensorFlow.

  Returns the index of the first arguments that `train` would reject, and its
  message; or None.
  """
  try:
    ended = subprocess.run(
      sweep.command('dry_runs'),
      env=sweep.environment(),
      input=json.dumps(argument_lists).encode(),
      capture_output=True,
      timeout=_SECONDS_EACH * len(argument_lists),
    )
  except subprocess.TimeoutExpired as error:
    raise signals.NoAnswerError(
      f'Waited {error.timeout:g} seconds for smoke tests of environments and '
      'networks.'
    ) from error
  if ended.returncode:
    raise signals.NoAnswerError(
      'Smoke tests of environments and networks failed:\n'
      + ended.stderr.decode(errors='replace').strip()
    )
  return json.loads(ended.stdout)


def main() -> None:
  """Serves `find_refused`: reads JSON from stdin, writes JSON to stdout."""
  answer = os.dup(1)
  os.dup2(2, 1)  # Keeps output of libraries out of the answer.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  refused = try_all(json.load(sys.stdin))
  os.write(answer, json.dumps(refused).encode())


def try_all(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Implements `find_refused` in this process."""
  for index, arguments in enumerate(argument_lists):
    values = command.define_flags(flag_tables.TRAIN_FLAGS)
    try:
      settings = _parse(arguments, values)
      topology, launcher = factory.make_layout(values)
      experiment = factory.make_experiment(values, settings)
      launch.opening.plan.make_plan(experiment, topology, launcher)
    except (*_BAD_INPUT, TimeoutError) as error:
      return index, errors.describe(error, values)
  return None


def _parse(
  arguments: Sequence[str], values: flags.FlagValues
) -> dict[str, str]:
  settings, positional = command.read_arguments(
    'repertory train', arguments, values
  )
  command.expect_no_arguments(positional)
  return settings
