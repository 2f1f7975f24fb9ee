"""Flags of the commands, with defaults and help texts."""

import dataclasses
import itertools
import typing
from collections.abc import Mapping
from typing import Any

from absl import flags

from repertory.agents.reward_models import registry as reward_models
from repertory.components.config import settings
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher
from repertory.launch.topologies import topology

# absl's functions that define flags, by type of the value.
DEFINE = {
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  bool: flags.DEFINE_bool,
  str: flags.DEFINE_string,
  tuple: flags.DEFINE_list,
}


# Fields of an experiment, which flags of the same name set.
FIELDS = {
  field.name: field for field in dataclasses.fields(experiment_lib.Experiment)
}


def flag(
  name: str, text: str, default: Any = None, kind: type | None = None
) -> tuple:
  """Returns name, absl's function, default and help text of a flag.

  Default and kind are those of the experiment's field of that name if they are
  None; without such a field the kind is that of the default, or str.
  """
  field = FIELDS.get(name)
  if kind is None and default is not None:
    kind = type(default)
  elif kind is None:
    kind = settings.kind_of(field.type) if field is not None else str
    default = field.default if field is not None else None
  return name, DEFINE[kind], default, text


def _make(kinds: Mapping[str, Any]) -> tuple[tuple, ...]:
  """Returns a flag for each setting of topologies or launchers, by name.

  Settings of one name share a flag, so they must have one type.
  """
  found: dict[str, tuple] = {}  # Kind and default, by flag.
  helps: dict[str, dict[str, list[str]]] = {}  # Classes by flag and text.
  for name, kind in kinds.items():
    for field in dataclasses.fields(kind):
      own_type = type(field.default)
      if field.default is None:  # Then the annotation is '<type> | None'.
        own_type = next(iter(typing.get_args(field.type)), own_type)
      default = None if field.default in ((), '') else field.default
      found[field.name] = (DEFINE[own_type], default)
      texts = helps.setdefault(field.name, {})
      texts.setdefault(field.metadata['help'], []).append(name)
  return tuple(
    (
      flag,
      *found[flag],
      ' '.join(
        f'With {" or ".join(names)}: {text}' for text, names in texts.items()
      ),
    )
    for flag, texts in helps.items()
  )


TOPOLOGY_FLAGS = _make(topology.topologies())
LAUNCHER_FLAGS = _make(launcher.launchers())

_AGENT_FLAGS = (
  flag(
    'agent',
    'The agent; `repertory agents` lists them. User agents are '
    'my_module:MyBuilder. Its settings are --config.<name>=<value>; `repertory '
    'agents <agent>` lists them.',
    'dqn',
  ),
  flag(
    'env',
    'The environment; `repertory environments` lists them. User environments '
    'are my_module:make_environment.',
    'catch',
  ),
  flag(
    'preset',
    'Settings of the agent for a kind of environments, which --config.<name> '
    'may override; `repertory agents <agent>` lists them; default: none.',
  ),
  flag(
    'reward_model',
    'Reward model that changes the rewards of the agent: '
    + ', '.join(one.name for one in reward_models.reward_models())
    + '. Its settings are --reward_model.<name>=<value>; `repertory '
    'reward_models` lists all. --wrap is its earlier name; default: nothing.',
  ),
)
_TOPOLOGY_FLAGS = (
  flag(
    'topology',
    ' '.join(
      f'{name}: {kind.help}.' for name, kind in topology.topologies().items()
    ),
    'single',
  ),
  flag(
    'num_actors',
    'Number of actors. In single, one actor steps the environments of all.',
  ),
  flag(
    'environments_per_actor',
    'Number of environments that an actor steps as a batch; default: see '
    '`repertory agents <agent>`.',
  ),
  *TOPOLOGY_FLAGS,
)
EXPERIMENT_FLAGS = (*_AGENT_FLAGS, *_TOPOLOGY_FLAGS)
# Flags of `train` by heading in the help.
_TRAIN_TABLES = {
  'Agent, environment and steps': (
    *_AGENT_FLAGS[:2],
    flag(
      'steps',
      'Total environment steps of the run, over all actors; with offline, '
      'learner steps.',
      10_000,
    ),
    *_AGENT_FLAGS[2:],
    flag('seed', 'Seed of all random numbers.'),
    flag(
      'stop_at_return',
      'Mean return of an evaluation at which the run ends early, as if all '
      'steps had been taken; default: none.',
      kind=float,
    ),
    flag(
      'demonstrations',
      'Folders of demonstrations to mix into every replay batch, from '
      '--record, `repertory record` or Minari; default: none.',
      kind=tuple,
    ),
    flag(
      'demonstration_fraction',
      'Share of --demonstrations in every batch; 0 for none.',
    ),
    flag(
      'initial_from',
      'Directory of another run, whose newest networks initialize a new run; '
      'default: none.',
    ),
    flag(
      'deterministic',
      'With '
      + topology.names_of_able('deterministic')
      + ': training is reproducible from the seed, bit by bit.',
    ),
    flag(
      'eager',
      'With '
      + topology.names_of_able('eager')
      + ': run policy and update eagerly, so that breakpoint() and print() '
      'show numbers. Much slower.',
    ),
  ),
  'Directories': (
    flag(
      'directory',
      'Directory of logs and checkpoints; default: '
      'runs/<agent>/<environment>/seed_<seed>. An existing run is resumed.',
      kind=str,
    ),
    flag('fresh', 'Start over; the old directory is moved aside.', False),
    flag(
      'record',
      'Folder to record training episodes to, for --topology=offline; default: '
      'nowhere.',
    ),
    flag(
      'storage',
      'Storage for copies of checkpoints, from which another host can resume: '
      'a path, or a URL that fsspec supports; default: nowhere.',
    ),
  ),
  'Logs': (
    flag(
      'info',
      "Entries of Gymnasium's info to log, such as distance,success: columns "
      'of the logs of actors and evaluator, with values of the last step of '
      'each episode; default: none.',
      kind=tuple,
    ),
    flag(
      'episode_rows',
      'Write logs/episodes.csv, with a row for each training episode.',
    ),
    flag(
      'callbacks',
      'User callbacks, such as my_module:MyObserver: subclasses of '
      'launch.Callback; default: none.',
      kind=tuple,
    ),
    flag(
      'wandb_project',
      'Weights & Biases project to log to, besides files; default: none.',
    ),
  ),
  'Evaluation': (
    flag(
      'evaluation_period',
      'Environment steps between evaluations; default: a tenth of --steps.',
    ),
    flag(
      'evaluation_episodes', 'Number of episodes of an evaluation; 0 for none.'
    ),
    flag(
      'evaluation_metrics',
      'User metrics of evaluations by column, such as moves=my_module:Moves: '
      'subclasses of EpisodeMetric; default: none.',
      kind=tuple,
    ),
  ),
  'Topology': (
    *_TOPOLOGY_FLAGS,
    flag(
      'lp_launch_type',
      'Nodes of topologies with several nodes run in '
      + ', '.join(
        f'{kind.help} ({name})' for name, kind in launcher.launchers().items()
      )
      + '.',
      'local_mt',
    ),
  ),
  'Several machines': LAUNCHER_FLAGS,
  'Checkpoints and failures': (
    flag('checkpoint_period_seconds', 'Time between checkpoints.'),
    flag(
      'checkpoint_period_learner_steps',
      'Learner steps after which a checkpoint is written even before that '
      'time; default: none.',
    ),
    flag('checkpoint_replay', 'Whether checkpoints include the replay tables.'),
    flag('checkpoints_to_keep', 'Number of newest checkpoints to keep.'),
    flag(
      'checkpoint_errors',
      'Handling of failures to write a checkpoint. warn: keep the last one and '
      'try again after the period. raise: end the run.',
    ),
    flag(
      'on_divergence',
      'Handling of a learner step whose metrics, priorities or running '
      'statistics are not finite. stop: the run ends and the batch is saved. '
      'skip: the step is undone.',
    ),
    flag('timeout_seconds', 'Time-out for waits on other nodes.'),
    flag(
      'stall_seconds',
      'Time without progress after which the run ends with a report; also '
      'the time-out for a step or reset of an environment.',
    ),
    flag(
      'max_restarts',
      'Maximum number of restarts of a failed process within ten minutes; '
      '0 for none.',
    ),
  ),
}
TRAIN_FLAGS = tuple(itertools.chain(*_TRAIN_TABLES.values()))
TRAIN_GROUPS = {
  heading: tuple(name for name, *_ in table)
  for heading, table in _TRAIN_TABLES.items()
}
TRAIN_NAMES = frozenset(itertools.chain(*TRAIN_GROUPS.values()))

# Flags of commands on trained agents.
TRAINED_FLAGS = (
  flag(
    'directory',
    'Directory of the run, instead of the argument DIRECTORY.',
    kind=str,
  ),
  flag(
    'best',
    'Use the policy of the best evaluation during training instead of '
    'the newest checkpoint.',
    False,
  ),
  flag(
    'agent',
    'Name of the agent. Needed only for user agents: a module that only '
    'the directory names, as in my_module:MyBuilder, is not imported.',
    kind=str,
  ),
  flag('env', 'Name of the environment. Needed only for user environments.'),
  flag(
    'trust',
    'Import the modules named in the directory, which runs their code.',
    False,
  ),
)
