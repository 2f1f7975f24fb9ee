"""Whether `train` would take what is typed, before anything starts."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any

from absl import flags

from repertory import launch
from repertory.agents.wrappers import wrap_config
from repertory.components import signals
from repertory.launch.commands import command, errors, making, typed
from repertory.launch.commands import flags as flag_tables
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.sweeps import children
from repertory.launch.topologies import topology as topology_lib

# An environment has 300 s to be made, and a network takes less.
_SECONDS_EACH = 600.0

_BAD_INPUT = (ValueError, ImportError, flags.Error)


def read_settings(
  arguments: Sequence[str], left_out: Collection[str]
) -> dict[str, Any]:
  """Returns what arguments of `train` mean; does without TensorFlow.

  Args:
    arguments: What to type.
    left_out: Flags that are no settings.

  Returns:
    Plain values: of flags by name, of the agent's config by `config.` and name,
    and of what wraps it by `wrap.` and name.

  Raises:
    ValueError: If `train` would refuse them, as far as that shows without
      TensorFlow; in its words.
  """
  values = typed.define(flag_tables.TRAIN_FLAGS)
  try:
    settings, _, _ = _read(arguments, values)
    plan = making.plan_experiment(values, settings)
  except _BAD_INPUT as error:
    raise ValueError(_translate(error, values)) from error
  found = {name: values[name].value for name in values if name not in left_out}
  for name, value in dataclasses.asdict(plan.config).items():
    found[f'config.{name}'] = value
  if plan.wrapping is not None:
    for name, value in dataclasses.asdict(plan.wrapping.config).items():
      found[f'{wrap_config.WRAP}.{name}'] = value
  # As they will be read from a file.
  return json.loads(json.dumps(found, default=repr))


def find_refused(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Tries environments, networks and replay in a process of its own.

  For that takes TensorFlow, which this process need not load.

  Args:
    argument_lists: What to type behind `repertory train`, one after another.

  Returns:
    The index of the first that `train` would refuse, and what it would say;
    None if there is none.

  Raises:
    signals.NoAnswerError: If that cannot be found out.
  """
  try:
    ended = subprocess.run(
      children.command('trying'),
      env=children.environment(),
      input=json.dumps(argument_lists).encode(),
      capture_output=True,
      timeout=_SECONDS_EACH * len(argument_lists),
    )
  except subprocess.TimeoutExpired as error:
    raise signals.NoAnswerError(
      f'Waited {error.timeout:g} seconds for environments and networks to be '
      'tried.'
    ) from error
  if ended.returncode:
    raise signals.NoAnswerError(
      'Environments and networks could not be tried:\n'
      + ended.stderr.decode(errors='replace').strip()
    )
  return json.loads(ended.stdout)


def main() -> None:
  """Answers what `find_refused` asks, on the standard input, in JSON."""
  answer = os.dup(1)
  os.dup2(2, 1)  # Whatever libraries print there is no answer.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  refused = try_all(json.load(sys.stdin))
  os.write(answer, json.dumps(refused).encode())


def try_all(
  argument_lists: Sequence[Sequence[str]],
) -> tuple[int, str] | None:
  """Does what `find_refused` asks for, in this process."""
  for index, arguments in enumerate(argument_lists):
    values = typed.define(flag_tables.TRAIN_FLAGS)
    try:
      settings, topology, launcher = _read(arguments, values)
      experiment = making.make_experiment(values, settings)
      launch.running.check(experiment, topology, launcher)
    except (*_BAD_INPUT, TimeoutError) as error:
      return index, _translate(error, values)
  return None


def _read(
  arguments: Sequence[str], values: flags.FlagValues
) -> tuple[dict[str, str], topology_lib.Topology, launcher_lib.Launcher]:
  """Reads what is typed, and makes of it what needs no TensorFlow."""
  settings, positional = typed.read('repertory train', arguments, values)
  command.expect_no_arguments(positional)
  topology = making.make_topology(values)
  launcher = making.make_launcher(values)
  topology_lib.check_launch(
    topology, launcher, values.deterministic, values.eager
  )
  return settings, topology, launcher


def _translate(error: Exception, values: flags.FlagValues) -> str:
  return errors.describe(error, values, flag_tables.TRAIN_NAMES)
