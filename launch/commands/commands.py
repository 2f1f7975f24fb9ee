"""`repertory <command>`: flags become an experiment, and it runs.

This is the only module that reads flags: they do not reach other processes.
Until each of them is known to be good by itself, TensorFlow is not imported.
"""

import dataclasses
import signal
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence

from absl import flags

from repertory import __version__, launch
from repertory.agents import registry as agents_registry
from repertory.components import settings as settings_lib
from repertory.components import signals
from repertory.environments import name_options
from repertory.environments import registry as environments_registry
from repertory.launch import commands, failures, runs
from repertory.launch import experiment as experiment_lib
from repertory.launch.commands import errors as flag_errors
from repertory.launch.commands import flags as flag_tables
from repertory.launch.host import interrupts, lost_readers
from repertory.launch.launchers import launcher
from repertory.launch.topologies import topology as topology_lib

# Exit codes, besides 0.
_FAILED = 1
_BAD_INPUT = 2
_NOT_SAVED = 3

# Steps of a run in which every table becomes full.
_LONG = 10**12

_CONFIG_PREFIX = '--config.'

_TRAIN_FLAG_NAMES = frozenset(name for name, *_ in flag_tables.TRAIN_FLAGS)


@dataclasses.dataclass(frozen=True)
class _Command:
  """What `repertory <name>` does.

  Attributes:
    usage: Its arguments, one line.
    description: One line.
    flag_table: Name, kind, default and text of its flags.
    run: Takes flags, settings of `--config.` and the other arguments; returns
      the exit code.
  """

  usage: str
  description: str
  flag_table: Sequence[tuple]
  run: Callable[[flags.FlagValues, Mapping[str, str], Sequence[str]], int]


def run(arguments: Sequence[str]) -> int:
  """Runs a command.

  Args:
    arguments: What follows `repertory` on the command line.

  Returns:
    The exit code.
  """
  if not arguments or arguments[0] in ('-h', '--help', 'help'):
    print(_overview())
    return 0 if arguments else _BAD_INPUT
  name, *rest = arguments
  if name == '--version':
    print(f'repertory {__version__}')
    return 0
  if name not in _COMMANDS:
    hint = settings_lib.did_you_mean(name, _COMMANDS)
    return _complain(
      f"command must be one of {', '.join(_COMMANDS)}; got '{name}'.{hint}"
    )
  command = _COMMANDS[name]
  values = flags.FlagValues()
  for flag, define, default, text in command.flag_table:
    define(flag, default, text, flag_values=values)
  if any(argument in ('-h', '--help', '--helpfull') for argument in rest):
    print(f'repertory {name} {command.usage}\n\n{command.description}')
    print(values.get_help())
    return 0
  try:
    settings, rest = _split_settings(rest)
    positional = values([f'repertory {name}', *rest])[1:]
    return command.run(values, settings, positional)
  except flags.IllegalFlagValueError as error:
    return _complain(flag_errors.describe_illegal(str(error), values))
  except flags.UnrecognizedFlagError as error:
    return _complain(flag_errors.describe_unknown(error.flagname, values))
  except (ValueError, ImportError, flags.Error) as error:
    return _complain(flag_errors.describe(error, values, _TRAIN_FLAG_NAMES))
  # Of an environment that was tried, or a storage.
  except (TimeoutError, signals.NoAnswerError) as error:
    print(f'repertory: {error}', file=sys.stderr)
    return _FAILED
  except KeyboardInterrupt:
    print('repertory: interrupted', file=sys.stderr)
    return interrupts.EXIT_BASE + signal.SIGINT
  except failures.NodeError as error:
    print(f'\nrepertory: {str(error).rstrip()}', file=sys.stderr)
    return _BAD_INPUT if error.failure.is_bad_input else _FAILED


def _train(values, settings, positional) -> int:
  _expect_no_arguments(positional)
  topology = _make_topology(values)
  launch_type = _make_chosen(
    values,
    'lp_launch_type',
    launcher.get(values.lp_launch_type),
    launcher.launchers(),
    flag_tables.LAUNCHER_FLAGS,
  )
  topology_lib.check_launch(topology, launch_type, values.deterministic)
  experiment = _make_experiment(values, settings)
  with interrupts.leaving_at_once():
    run_experiment = launch.running.run
  result = run_experiment(
    experiment,
    topology=topology,
    launch_type=launch_type,
    fresh=values.fresh,
  )
  status = result.status
  if result.interrupted == signal.SIGHUP:
    lost_readers.let_go()  # Else it would be an error to say how it ended.
  if result.interrupted and not status.steps:
    print('Interrupted before the first step; the same command starts afresh.')
    return interrupts.EXIT_BASE + result.interrupted
  if result.interrupted:
    how = _how_to_go_on(experiment, result.directory)
    print(f'Interrupted; {how} goes on from the checkpoint.')
  elif status.evaluation_return is not None:
    print(
      f'Mean return of the last evaluation: {status.evaluation_return:.4g} '
      f'({experiment.evaluation_episodes} episodes)'
    )
  if result.why_no_update:
    print(f'repertory: {result.why_no_update}', file=sys.stderr)
  if result.best is not None:
    print(
      f'Best evaluation: {status.best_return:.4g}, after {status.best_steps} '
      f'steps; `repertory evaluate --best` takes its policy'
    )
  print(f'Logs:        {result.directory}/logs')
  print(f'Checkpoints: {result.directory}/checkpoints')
  if result.variables_sha256 is not None:
    print(f'Variables: sha256 {result.variables_sha256}')
  loss = runs.resuming.describe_loss(result.directory, status.learner_steps)
  if loss:
    print(f'repertory: {loss}', file=sys.stderr)
  if result.not_stored:
    print(f'repertory: {result.not_stored}', file=sys.stderr)
  if result.interrupted:
    return interrupts.EXIT_BASE + result.interrupted
  return _NOT_SAVED if loss or result.not_stored else 0


def _how_to_go_on(experiment, directory: str) -> str:
  """Says which command goes on from the last checkpoint."""
  if experiment.deterministic and not runs.resuming.is_exact(directory):
    return 'the same command without --deterministic'
  return 'the same command'


def _evaluate(values, settings, positional) -> int:
  _expect_no_arguments(positional)
  if settings:
    raise ValueError(
      'config settings come from the checkpoint in `evaluate`, got '
      f'{sorted(settings)}.'
    )
  if not values.directory:
    raise ValueError('--directory must name the directory of a trained agent.')
  with interrupts.leaving_at_once():
    running = launch.running
  checkpoint = running.load_policy(values.directory, values.best)
  experiment = experiment_lib.from_identity(
    checkpoint.state['experiment'], values.directory
  )
  returns = [
    episode.episode_return
    for episode in running.evaluate(
      experiment, values.episodes, best=values.best
    )
  ]
  print(
    f'{experiment.agent} on {experiment.environment}, learner step '
    f'{checkpoint.state["counts"]["learner_steps"]}, {len(returns)} episodes'
  )
  print(f'mean       {statistics.fmean(returns):.6g}')
  print(f'deviation  {statistics.pstdev(returns):.6g}')
  print(f'minimum    {min(returns):.6g}')
  print(f'maximum    {max(returns):.6g}')
  return 0


def _graph(values, settings, positional) -> int:
  _expect_no_arguments(positional)
  topology = _make_topology(values)
  experiment = _make_experiment(values, settings)
  print(commands.graph.mermaid(experiment, topology))
  return 0


def _agents(flag_values, settings, positional) -> int:
  del flag_values, settings
  if not positional:
    for agent in agents_registry.agents():
      print(f'{agent.name:8} {agent.description}')
    return 0
  for name in positional:
    config_class = agents_registry.get(name).config_class
    number = config_class.default_environments_per_actor
    print(f'--environments_per_actor={number}  (if nothing is said)')
    for setting in agents_registry.settings(name):
      print(f'--config.{setting.name}={setting.default}  ({setting.type})')
      print(f'    {setting.help}')
    for preset, values in agents_registry.get(name).presets.items():
      print(f'--preset={preset}')
      for field, value in values.items():
        print(f'    {field}={value}')
  return 0


def _environments(values, settings, positional) -> int:
  del values, settings
  _expect_no_arguments(positional)
  for entry in environments_registry.names():
    needs = f' (needs: {entry.requirement})' if entry.requirement else ''
    print(f'{entry.pattern:30} {entry.description}{needs}')
    for option in entry.options:
      print(f'    ?{name_options.describe(option)}')
  return 0


def _make_experiment(values, settings) -> experiment_lib.Experiment:
  """Makes the experiment of the flags that a command has."""
  if 'directory' in values and values.directory == '':
    raise settings_lib.SettingError(
      'directory', 'must be a path, or left out; got nothing.'
    )
  chosen = {
    name: values[name].value
    for name in values
    if name in flag_tables.DEFAULTS and name != 'agent'
  }
  with interrupts.leaving_at_once():  # TensorFlow is imported.
    return experiment_lib.make_experiment(
      values.agent,
      values.env,
      max_steps=values.steps if 'steps' in values else _LONG,
      config=dict(settings),
      preset=values.preset,
      **chosen,
    )


def _make_topology(values) -> topology_lib.Topology:
  """Makes the topology of the flags.

  Raises:
    ValueError: If there is none of that name, or there are flags of another.
  """
  with interrupts.leaving_at_once():  # Devices are TensorFlow's.
    return _make_chosen(
      values,
      'topology',
      topology_lib.get(values.topology),
      topology_lib.topologies(),
      flag_tables.TOPOLOGY_FLAGS,
    )


def _make_chosen(values, flag: str, kind, kinds, flag_table):
  """Makes the topology or launcher that a flag names, of its own flags.

  Args:
    kind: What the flag names.
    kinds: All that it can name.
    flag_table: The flags of all of them.

  Raises:
    ValueError: If there are flags of another.
  """
  own = {field.name for field in dataclasses.fields(kind)}
  chosen = {
    name: values[name].value for name, *_ in flag_table if values[name].present
  }
  for name in sorted(chosen.keys() - own):
    owners = [
      other
      for other, kind in kinds.items()
      if name in {field.name for field in dataclasses.fields(kind)}
    ]
    raise settings_lib.SettingError(
      name,
      f'must be left out: it is of --{flag}={" or ".join(owners)}, got '
      f'--{flag}={values[flag].value}.',
    )
  settings = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in chosen.items()
  }
  return kind(**settings)


def _split_settings(
  arguments: Sequence[str],
) -> tuple[dict[str, str], list[str]]:
  """Takes out `--config.<name>=<value>` and `--config.<name> <value>`."""
  settings, rest = {}, []
  iterator = iter(arguments)
  for argument in iterator:
    if not argument.startswith(_CONFIG_PREFIX):
      rest.append(argument)
      continue
    name, equals, value = argument[len(_CONFIG_PREFIX) :].partition('=')
    if not equals:
      value = next(iterator, None)
      if value is None or value.startswith('--'):
        raise ValueError(f'{argument} must be given a value, got none.')
    settings[name] = value
  return settings, rest


def _expect_no_arguments(positional: Sequence[str]) -> None:
  if positional:
    raise ValueError(
      f'arguments must be flags, --name=value; got {" ".join(positional)}.'
    )


def _complain(message: str) -> int:
  print(f'repertory: {message.strip()}', file=sys.stderr)
  return _BAD_INPUT


def _overview() -> str:
  lines = ['repertory <command> [--help]', 'repertory --version', '']
  for name, command in _COMMANDS.items():
    lines.append(f'  {name:14}{command.description}')
  return '\n'.join(lines)


_COMMANDS = {
  'train': _Command(
    '--agent=AGENT --env=ENVIRONMENT [--flags] [--config.NAME=VALUE]',
    'Trains an agent, or goes on where its directory has it.',
    flag_tables.TRAIN_FLAGS,
    _train,
  ),
  'evaluate': _Command(
    '--directory=DIRECTORY [--best] [--episodes=N]',
    'Runs episodes with the evaluation policy of a trained agent.',
    flag_tables.EVALUATE_FLAGS,
    _evaluate,
  ),
  'graph': _Command(
    '--agent=AGENT --topology=TOPOLOGY [--num_actors=N]',
    'Prints the program graph as Mermaid: nodes, and who calls whom.',
    flag_tables.EXPERIMENT_FLAGS,
    _graph,
  ),
  'agents': _Command(
    '[AGENT]',
    'Lists the agents, or the settings of one.',
    (),
    _agents,
  ),
  'environments': _Command('', 'Lists the environments.', (), _environments),
}
