"""`repertory sweep`: runs `train` with many settings."""

import dataclasses
import functools
import json
import os
import signal
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError
from repertory.components.runtime import versions
from repertory.launch import cli, sweeps
from repertory.launch.cli import command, entry_point, errors, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.platform import interrupts, terminal
from repertory.launch.sweeps import manifest, plans
from repertory.launch.sweeps import values as values_lib

if TYPE_CHECKING:  # These import what takes its time.
  from repertory.launch.sweeps import sweep as sweep_lib

# Flags of `train` that apply to the sweep as a whole.
_OWN = ('directory', 'storage', 'fresh')
# Flags without effect on learning: equal in all runs, and free to change when
# the sweep is resumed.
_HOW = (
  'checkpoint_period_seconds', 'checkpoint_period_learner_steps',
  'checkpoint_replay', 'checkpoints_to_keep', 'checkpoint_errors',
  'timeout_seconds', 'stall_seconds', 'max_restarts', 'ray_address',
  'bind_interface', 'allow_public_addresses', 'node_resources',
  'learner_devices', 'inference_devices', 'wandb_project',
)  # fmt: skip

_KINDS = {define: kind for kind, define in flag_tables.DEFINE.items()}
_KIND_OF_FLAG = {
  name: _KINDS[define] for name, define, *_ in flag_tables.TRAIN_FLAGS
}


def _define_text(name, default, text, flag_values, boolean=False) -> None:
  """Defines a flag as text, for several values."""
  parser, serializer = flags.ArgumentParser(), flags.ArgumentSerializer()
  flag = flags.Flag(parser, serializer, name, default, text, boolean=boolean)
  flags.DEFINE_flag(flag, flag_values=flag_values)


def _as_text(flag: tuple) -> tuple:
  name, define, default, text = flag
  if name in _OWN:
    return flag
  if default is not None:
    default = str(default).lower() if default in (True, False) else str(default)
  is_bool = define is flags.DEFINE_bool
  define = functools.partial(_define_text, boolean=is_bool)
  return name, define, default, text


_OF_SWEEP = flag_tables.table(
  {
    'directory': 'Directory of the sweep, with a directory for each run; '
    'required. An existing sweep is resumed.',
    'seeds': 'Number of seeds of each combination, from 0; default: those of '
    '--seed.',
    'parallel': 'Number of concurrent runs; default: one per core, or fewer if '
    'a run has several nodes.',
    'study': 'Search: total number of trials, earlier ones included. Settings '
    'may have ranges, such as 1..10 or 1e-5..1e-2:log.',
    'study_seed': 'With --study: seed of the search.',
  },
  directory=str,
  seeds=int,
  parallel=int,
  study=int,
  study_seed=0,
)
_FLAGS = (
  *_OF_SWEEP,
  *(_as_text(one) for one in flag_tables.TRAIN_FLAGS if one[0] != 'directory'),
)


@command.register(
  'sweep',
  2,
  '--directory=DIRECTORY [--seeds=N] [--flag=VALUE,VALUE] '
  '[--config.NAME=VALUE,VALUE] [--study=N]',
  'Trains with all combinations of values, or searches for good ones.',
  _FLAGS,
  groups={
    'The sweep': [name for name, *_ in _OF_SWEEP],
    **flag_tables.TRAIN_GROUPS,
  },
  takes_settings=True,
)
def _sweep(values, settings, positional) -> int:
  del positional
  check_own(values)
  _check_pairs(values)
  plan = _make_plan(values, _read_given(values, settings))
  own = plan.settings
  # Each actor, the learner and replay keep a core busy.
  busy = 1 if own['topology'] == 'single' else own['num_actors'] + 2
  pool, interrupted = run_plan(
    plan, values, busy, float(values.timeout_seconds), values.storage or ''
  )
  return report_end(pool, interrupted)


def run_plan(
  plan: plans.SweepPlan,
  values: flags.FlagValues,
  cores_per_run: int,
  stop_seconds: float,
  storage: str = '',
) -> 'tuple[sweep_lib.Pool, int | None]':
  """Checks and runs a plan in --directory, --parallel runs at a time.

  Returns:
    The pool, with the manifest and the failures; and the signal that ended it
    early, if any.
  """
  _try_new_combinations(plan, values.directory, values.fresh)
  parallel = values.parallel or max(1, versions.num_cpus() // cores_per_run)
  with sweeps.sweep.opened(values.directory, plan, values.fresh) as found:
    print(
      f'{plan.description}; {parallel} at a time'
      f'{"" if values.parallel else " (--parallel)"}.',
      flush=True,
    )
    pool = sweeps.sweep.Pool(
      plan, found, entry_point.train, parallel, stop_seconds, storage
    )
    return pool, pool.run()


def check_own(values: flags.FlagValues) -> None:
  """Raises SettingError if a flag of the sweep itself is wrong."""
  if not values.directory:
    raise SettingError(
      'directory', 'must be the path of a directory; got nothing.'
    )
  for name, least in (
    ('seeds', 1), ('parallel', 1), ('study', 1), ('study_seed', 0)
  ):  # fmt: skip
    number = values[name].value if name in values else None
    if number is not None and number < least:
      raise SettingError(name, f'must be at least {least}, got {number}.')


def _check_pairs(values: flags.FlagValues) -> None:
  """Raises SettingError if flags of the sweep exclude one another."""
  for name, other, is_wrong in (
    ('seeds', 'with --seed', values.seeds and values['seed'].present),
    ('fresh', 'with --storage', values.fresh and values.storage),
    ('study_seed', 'without --study', values.study_seed and not values.study),
  ):
    if is_wrong:
      raise SettingError(name, f'must be left out {other}.')


def _read_given(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> values_lib.Given:
  """Parses the values of each setting; seed 0 without any."""
  given: dict[str, Any] = {}
  for name, kind in _KIND_OF_FLAG.items():
    text = str(values[name].value)
    if name in _HOW and values[name].present:
      given[name] = (text.strip('[]()'),)
    elif name not in _OWN and values[name].present:
      given[name] = values_lib.read(name, text, kind)
  for name, text in settings.items():
    given[name] = values_lib.read(name, text, _kind_of_setting(values, name))
  for name, one in given.items():
    is_range = isinstance(one, values_lib.Range)
    if is_range and (not values.study or name == manifest.SEED):
      raise SettingError(
        name,
        'must be values, as only settings of a --study have ranges, got '
        f'{one.text!r}.',
      )
  seeds = given.pop(manifest.SEED, range(values.seeds or 1))
  parsed = [settings_lib.parse(manifest.SEED, seed, int) for seed in seeds]
  return {**given, manifest.SEED: tuple(map(str, dict.fromkeys(parsed)))}


def _kind_of_setting(values: flags.FlagValues, name: str) -> type:
  """Returns the type of a setting of an agent or reward model."""
  owner, _, field = name.partition('.')
  flag, get = owner, reward_models.get
  if owner == 'config':
    flag, get = 'agent', agents_registry.get
  for one in (values[flag].value or '').split(','):
    types = typing.get_type_hints(get(one).config_class) if one else {}
    if field in types:
      return settings_lib.kind_of(types[field])
  return str  # Unknown: `train` reports it.


def _make_plan(
  values: flags.FlagValues, given: values_lib.Given
) -> plans.SweepPlan:
  """Makes the plan of the given values, after checks as in `train`."""
  if not values.study:
    return plans.GridPlan(given, read_settings)
  if len(given.get('env', ())) > 1:
    raise SettingError(
      'env',
      'must be one with --study, as returns of several are not comparable.',
    )
  plan = sweeps.study.StudyPlan(
    given, read_settings, values.study, values.study_seed
  )
  if plan.settings['evaluation_episodes'] == 0:
    raise SettingError(
      'evaluation_episodes',
      'must be at least 1 with --study, which needs evaluations, got 0.',
    )
  return plan


def _try_new_combinations(
  plan: plans.SweepPlan, directory: str, fresh: bool
) -> None:
  """Raises ValueError if `train` would reject one that has not begun."""
  there = manifest.SweepManifest(directory)
  if not fresh:
    there = sweeps.sweep.load(directory)
  runs = plan.untried(there)
  if not runs:
    return
  # Nothing is written to the directories.
  refused = cli.dry_runs.find_refused(
    [
      [*run.arguments, f'--directory={os.path.join(directory, run.path)}']
      for run in runs
    ]
  )
  if refused is None:
    return
  index, problem = refused
  own = ' '.join(
    argument
    for argument in runs[index].arguments
    if not all(argument in run.arguments for run in runs)
  )
  raise ValueError(f'With {own}: {problem}' if own else problem)


def read_settings(arguments: Sequence[str]) -> dict[str, Any]:
  """Returns the settings of arguments of `train` that affect learning.

  Names are those of flags, such as `config.<name>`. Raises ValueError if
  `train` would reject them, as far as that shows without TensorFlow.
  """
  values = command.define_flags(flag_tables.TRAIN_FLAGS)
  try:
    settings, _ = command.read_arguments('repertory', arguments, values)
    factory.make_layout(values)
    plan = factory.plan_experiment(values, settings)
  except (ValueError, ImportError, flags.Error) as error:
    raise ValueError(errors.describe(error, values)) from error
  found = {
    name: values[name].value for name in values if name not in (*_OWN, *_HOW)
  }
  found['preset'] = factory.preset_of(values)
  for prefix, config in (
    ('config.', plan.config),
    (reward_model_config.PREFIX, plan.reward_model_config),
  ):
    own = {} if config is None else dataclasses.asdict(config)
    found |= {prefix + name: value for name, value in own.items()}
  # Converts values as a file would.
  return json.loads(json.dumps(found, default=repr))


def report_end(
  pool: 'sweep_lib.Pool', interrupted: int | None, with_table: bool = True
) -> int:
  """Prints the results; returns the exit code."""
  if interrupted == signal.SIGHUP:
    terminal.let_go()  # Otherwise printing would fail.
  found, results = pool.manifest, sweeps.results
  rows = results.tabulate(found) if with_table and not interrupted else []
  if rows:
    print(results.write(rows))
    print(f'Plot: {results.plot(rows, found.directory)}')
  if rows or not (with_table or interrupted):
    for line in pool.plan.conclude():
      print(line)
  for failed in pool.failures:
    print(
      f'repertory: {failed.path} failed, {failed.problem}. Its last output:',
      *(f'    {line}' for line in failed.lines),
      sep='\n',
      file=sys.stderr,
    )
  if interrupted:
    print(
      f'Interrupted; runs done: {len(found.done())}. The same command resumes '
      'the others.'
    )
    return interrupts.EXIT_BASE + interrupted
  if pool.failures:
    print(
      f'repertory: failed runs: {len(pool.failures)}. The same command '
      f'{"does not repeat" if found.is_study else "repeats"} them.',
      file=sys.stderr,
    )
    return command.FAILED
  return command.DONE
