"""`repertory sweep`: runs `train` with many settings."""

import functools
import os
import signal
import sys
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError
from repertory.launch import cli, sweeps
from repertory.launch.cli import command
from repertory.launch.cli import flags as flag_tables
from repertory.launch.cli.flags import flag
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
  'wandb_project',
)  # fmt: skip
_STUDY_FLAGS = ('study_seed', 'objective', 'prune')
# Flags that may divide a processor, which is possible once per process.
_DEVICES = ('learner_devices', 'inference_devices')

_KINDS = {define: kind for kind, define in flag_tables.DEFINE.items()}
_KIND_OF_FLAG = {
  name: _KINDS[define] for name, define, *_ in flag_tables.TRAIN_FLAGS
}


def _as_text(define: Callable) -> Callable:
  """Returns a function that defines a flag as text, for several values."""
  is_bool = define is flags.DEFINE_bool

  def define_text(name, default, text, flag_values):
    if default is not None:
      default = str(default).lower() if is_bool else str(default)
    flag = flags.Flag(
      flags.ArgumentParser(),
      flags.ArgumentSerializer(),
      name,
      default,
      text,
      boolean=is_bool,
    )
    flags.DEFINE_flag(flag, flag_values=flag_values)

  return define_text


_FLAGS = (
  flag(
    'seeds',
    'Number of seeds of each combination, from 0; default: those of --seed.',
    kind=int,
  ),
  flag(
    'parallel',
    'Number of concurrent runs; default: one per core, or fewer if a run has '
    'several nodes.',
    kind=int,
  ),
  flag(
    'study',
    'Search: total number of trials, earlier ones included. Settings may have '
    'ranges, such as 1..10 or 1e-5..1e-2:log.',
    kind=int,
  ),
  flag('study_seed', 'With --study: seed of the search.', 0),
  flag(
    'objective',
    'With --study: value to maximize, the mean return of the last evaluation '
    '(last) or of the best (best).',
    'last',
  ),
  flag(
    'prune',
    'With --study: stop trials whose evaluations fall behind the median of '
    'earlier trials.',
    False,
  ),
  flag(
    'directory',
    'Directory of the sweep, with a directory for each run; required. An '
    'existing sweep is resumed.',
    kind=str,
  ),
  *(
    (name, define if name in _OWN else _as_text(define), default, text)
    for name, define, default, text in flag_tables.TRAIN_FLAGS
    if name != 'directory'
  ),
)
_GROUPS = {
  'The sweep': ('directory', 'seeds', 'parallel', 'study', *_STUDY_FLAGS),
  **flag_tables.TRAIN_GROUPS,
}


@command.register(
  'sweep',
  2,
  '--directory=DIRECTORY [--seeds=N] [--flag=VALUE,VALUE] '
  '[--config.NAME=VALUE,VALUE] [--study=N]',
  'Trains with all combinations of values, or searches for good ones.',
  _FLAGS,
  groups=_GROUPS,
  takes_settings=True,
)
def _sweep(values, settings, positional) -> int:
  del positional
  _check_own(values)
  plan = _make_plan(values, _read_given(values, settings))
  directory = values.directory
  num_done = sweeps.sweep.check(directory, plan, values.fresh)
  options = functools.partial(_options, values)
  _try(plan, options)
  parallel = values.parallel or _default_parallel(plan.settings)
  print(
    f'{plan.describe()}; done already: {num_done}; {parallel} at a time'
    f'{"" if values.parallel else " (--parallel)"}.',
    flush=True,
  )
  ending = sweeps.sweep.run(
    directory,
    plan,
    options,
    parallel,
    stop_seconds=float(values.timeout_seconds),
    fresh=values.fresh,
  )
  return _report_end(ending, plan)


def _check_own(values: flags.FlagValues) -> None:
  """Raises SettingError if flags of the sweep itself do not fit."""
  if not values.directory:
    raise SettingError(
      'directory', 'must be the path of the sweep; got nothing.'
    )
  for name in ('seeds', 'parallel', 'study'):
    number = values[name].value
    if number is not None and number < 1:
      raise SettingError(name, f'must be at least 1, got {number}.')
  if values.seeds and values['seed'].present:
    raise SettingError(
      'seeds',
      f'must be left out with --seed: {values.seeds} seeds are those from 0 to '
      f'{values.seeds - 1}.',
    )
  if values.fresh and values.storage:
    raise SettingError(
      'fresh',
      'must be left out with --storage in a sweep: choose another directory '
      'and storage.',
    )
  for name in _STUDY_FLAGS:
    if values[name].present and not values.study:
      raise SettingError(name, 'must be left out without --study.')
  if values.objective not in plans.OBJECTIVES:
    raise SettingError(
      'objective',
      f'must be one of {", ".join(plans.OBJECTIVES)}; got '
      f'{values.objective!r}.',
    )
  if values.study_seed < 0:
    raise SettingError(
      'study_seed', f'must be at least 0, got {values.study_seed}.'
    )


def _read_given(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> values_lib.Given:
  """Parses the values of each setting; seed 0 without any."""
  given: dict[str, Any] = {
    name: values_lib.read(name, str(values[name].value), kind)
    for name, kind in _KIND_OF_FLAG.items()
    if name not in _OWN and values[name].present
  }
  for name, text in settings.items():
    is_of_agent = not name.startswith(reward_model_config.PREFIX)
    full_name = f'config.{name}' if is_of_agent else name
    kind = _kind_of_setting(values, name)
    given[full_name] = values_lib.read(full_name, text, kind)
  for name, one in given.items():
    is_range = isinstance(one, values_lib.Range)
    if is_range and (not values.study or name == manifest.SEED):
      raise SettingError(
        name,
        'must be values, as only settings of a --study have ranges, got '
        f'{one.text!r}.',
      )
    if name in _HOW and (is_range or len(one) > 1):
      raise SettingError(
        name,
        'must have one value in a sweep, as it has no effect on learning.',
      )
  seeds = range(values.seeds or 1)
  seeds = given.pop(manifest.SEED, seeds)
  parsed = [settings_lib.parse(manifest.SEED, seed, int) for seed in seeds]
  if len(set(parsed)) < len(parsed):
    raise SettingError(
      manifest.SEED, f'must have each value once, got {",".join(seeds)}.'
    )
  return {**given, manifest.SEED: tuple(map(str, parsed))}


def _kind_of_setting(values: flags.FlagValues, name: str) -> type:
  """Returns the type of a setting of an agent or reward model."""
  flag, get = 'agent', agents_registry.get
  if name.startswith(reward_model_config.PREFIX):
    flag, get = reward_model_config.REWARD_MODEL, reward_models.get
    name = name.removeprefix(reward_model_config.PREFIX)
  found = values_lib.read(flag, values[flag].value or '', str)
  for one in found if isinstance(found, tuple) and values[flag].value else ():
    types = typing.get_type_hints(get(one).config_class)
    if name in types:
      return settings_lib.kind_of(types[name])
  return str  # Unknown: `train` reports it.


def _make_plan(
  values: flags.FlagValues, given: values_lib.Given
) -> plans.SweepPlan:
  """Makes the plan of the given values, after checks as in `train`."""
  read = functools.partial(cli.dry_runs.read_settings, left_out=(*_OWN, *_HOW))
  if not values.study:
    return plans.GridPlan(given, read)
  if len(given.get('env', ())) > 1:
    raise SettingError(
      'env',
      'must be one with --study, as returns of several are not comparable.',
    )
  try:
    plan_class = sweeps.study.StudyPlan
  except ImportError as error:
    if error.name != 'optuna':
      raise
    raise SettingError(
      'study', "needs the package optuna: pip install 'repertory[study]'."
    ) from error
  plan = plan_class(
    given,
    read,
    values.study,
    values.study_seed,
    values.objective,
    values.prune,
  )
  if plan.settings['evaluation_episodes'] == 0:
    raise SettingError(
      'evaluation_episodes',
      'must be at least 1 with --study, which needs evaluations, got 0.',
    )
  return plan


def _options(values: flags.FlagValues, run: manifest.SweepRun) -> list[str]:
  """Returns the arguments for a run's directory and storage."""
  options = [f'--directory={os.path.join(values.directory, run.path)}']
  if values.storage:
    options.append(f'--storage={values.storage.rstrip("/")}/{run.path}')
  return options


def _try(
  plan: plans.SweepPlan, options: Callable[[manifest.SweepRun], list[str]]
) -> None:
  """Raises ValueError if `train` would reject a combination not yet begun."""
  ways: dict[tuple[str, ...], list[manifest.SweepRun]] = {}
  for run in plan.untried():
    devices = tuple(
      argument
      for argument in run.arguments
      if argument[2:].partition('=')[0] in _DEVICES
    )
    ways.setdefault(devices, []).append(run)
  for runs in ways.values():
    refused = cli.dry_runs.find_refused(
      [[*run.arguments, *options(run)] for run in runs]
    )
    if refused is not None:
      index, problem = refused
      own = manifest.distinguish(runs[index], plan.untried())
      raise ValueError(f'With {own}: {problem}' if own else problem)


def _default_parallel(settings: Mapping[str, Any]) -> int:
  """Returns the default number of concurrent runs."""
  cores = len(os.sched_getaffinity(0))
  if settings['topology'] == 'single':
    return cores
  # Each actor, the learner and replay keep a core busy.
  return max(1, cores // (settings['num_actors'] + 2))


def _report_end(ending: 'sweep_lib.Ending', plan: plans.SweepPlan) -> int:
  """Prints the results; returns the exit code."""
  if ending.interrupted == signal.SIGHUP:
    terminal.let_go()  # Otherwise printing would fail.
  results, describe_code = sweeps.results, sweeps.sweep.describe_code
  rows = [] if ending.interrupted else results.tabulate(ending.manifest)
  if rows:
    print(results.write(rows))
    print(f'Plot: {results.plot(rows, ending.manifest.directory)}')
    for line in plan.conclude():
      print(line)
  for ended in ending.failures:
    print(
      f'repertory: {ended.run.path} failed, '
      f'{describe_code(ended.code)}. Its last output:',
      *(f'    {line}' for line in ended.lines),
      sep='\n',
      file=sys.stderr,
    )
  if ending.interrupted:
    print(
      f'Interrupted; runs done: {ending.num_done}. The same command resumes '
      'the others.'
    )
    return interrupts.EXIT_BASE + ending.interrupted
  if ending.failures:
    failed = ', '.join(
      f'{ended.run.path} ({describe_code(ended.code)})'
      for ended in ending.failures
    )
    print(
      f'repertory: failed: {failed}. The same command '
      f'{"repeats" if plan.retries else "does not repeat"} them.',
      file=sys.stderr,
    )
    return command.FAILED
  return command.DONE
