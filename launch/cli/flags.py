"""Flags of the commands, with defaults and help texts."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
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
  list: flags.DEFINE_list,
  tuple: flags.DEFINE_list,
}


# Fields of an experiment, which flags of the same name set.
FIELDS = {
  field.name: field for field in dataclasses.fields(experiment_lib.Experiment)
}


def flag(name: str, text: str, default: Any = None) -> tuple:
  """Returns name, absl's function, default and help text of a flag.

  A type as the default is that of a flag without default. If left out, type and
  default are those of the experiment's field of that name, or else str.
  """
  kind = default if isinstance(default, type) else type(default)
  if default is None:
    field = FIELDS.get(name)
    kind = settings.kind_of(field.type) if field is not None else str
    default = field.default if field is not None else None
  return name, DEFINE[kind], None if default is kind else default, text


def table(texts: Mapping[str, str], **defaults: Any) -> tuple[tuple, ...]:
  """Returns a `flag` for each name and help text."""
  return tuple(
    flag(name, text, defaults.get(name)) for name, text in texts.items()
  )


def _make(kinds: Mapping[str, Any]) -> tuple[tuple, ...]:
  """Returns a flag for each setting of topologies or launchers, by name.

  Settings of one name share a flag, so they must have one type.
  """
  found: dict[str, Any] = {}  # Default or type, by flag.
  helps: dict[str, dict[str, list[str]]] = {}  # Classes by flag and text.
  for name, kind in kinds.items():
    for field in dataclasses.fields(kind):
      default = field.default
      if default in (None, (), ''):
        default = settings.kind_of(field.type)
      found[field.name] = default
      texts = helps.setdefault(field.name, {})
      texts.setdefault(field.metadata['help'], []).append(name)
  return table(
    {
      name: ' '.join(
        f'With {" or ".join(names)}: {text}' for text, names in texts.items()
      )
      for name, texts in helps.items()
    },
    **found,
  )


TOPOLOGY_FLAGS = _make(topology.topologies())
LAUNCHER_FLAGS = _make(launcher.launchers())

_LAUNCH_TYPES = ', '.join(
  f'{kind.help} ({name})' for name, kind in launcher.launchers().items()
)
# Help texts of the flags of `train`, by heading.
_TEXTS = {
  'Agent, environment and steps': {
    'agent': 'The agent; `repertory agents` lists them. User agents are '
    'my_module:MyBuilder. Its settings are --config.<name>=<value>; `repertory '
    'agents <agent>` lists them.',
    'env': 'The environment; `repertory environments` lists them. User '
    'environments are my_module:make_environment.',
    'steps': 'Total environment steps of the run, over all actors; with '
    'offline, learner steps.',
    'preset': 'Settings of the agent for a kind of environments, which '
    '--config.<name> may override; `repertory agents <agent>` lists them. '
    'auto: those for this environment, if any are known; none: the plain '
    'defaults.',
    'reward_model': 'Reward model that changes the rewards of the agent: '
    f'{", ".join(one.name for one in reward_models.reward_models())}. Its '
    'settings are --reward_model.<name>=<value>; `repertory reward_models` '
    'lists all. --wrap is its earlier name; default: nothing.',
    'seed': 'Seed of all random numbers.',
    'stop_at_return': 'Mean return of an evaluation at which the run ends '
    'early, as if all steps had been taken; default: none.',
    'demonstrations': 'Folders of demonstrations to mix into every replay '
    'batch, from --record, `repertory record` or Minari; default: none.',
    'demonstration_fraction': 'Share of --demonstrations in every batch; 0 for '
    'none.',
    'initial_from': 'Directory of another run, whose newest networks '
    'initialize a new run; default: none.',
    'deterministic': f'With {topology.names_of_able("deterministic")}: '
    'training is reproducible from the seed, bit by bit.',
    'eager': f'With {topology.names_of_able("eager")}: run policy and update '
    'eagerly, so that breakpoint() and print() show numbers. Much slower.',
  },
  'Directories': {
    'directory': 'Directory of logs and checkpoints; default: '
    'runs/<agent>/<environment>/seed_<seed>. An existing run is resumed.',
    'fresh': 'Start over; the old directory is moved aside.',
    'record': 'Folder to record training episodes to, for --topology=offline; '
    'default: nowhere.',
    'storage': 'Storage for copies of checkpoints, from which another host can '
    'resume: a path, or a URL that fsspec supports; default: nowhere.',
  },
  'Logs': {
    'info': "Entries of Gymnasium's info to log, such as distance,success: "
    'columns of the logs of actors and evaluator, with values of the last step '
    'of each episode; default: none.',
    'episode_rows': 'Write logs/episodes.csv, with a row for each training '
    'episode.',
    'callbacks': 'User callbacks, such as my_module:MyObserver: subclasses of '
    'launch.Callback; default: none.',
    'wandb_project': 'Weights & Biases project to log to, besides files; '
    'default: none.',
  },
  'Evaluation': {
    'evaluation_period': 'Environment steps between evaluations; default: a '
    'tenth of --steps.',
    'evaluation_episodes': 'Number of episodes of an evaluation; 0 for none.',
    'evaluation_metrics': 'User metrics of evaluations by column, such as '
    'moves=my_module:Moves: subclasses of EpisodeMetric; default: none.',
  },
  'Topology': {
    'topology': ' '.join(
      f'{name}: {kind.help}.' for name, kind in topology.topologies().items()
    ),
    'num_actors': 'Number of actors. In single, one actor steps the '
    'environments of all.',
    'environments_per_actor': 'Number of environments that an actor steps as a '
    'batch; default: see `repertory agents <agent>`.',
  },
  'Several machines': {},
  'Checkpoints and failures': {
    'checkpoint_period_seconds': 'Time between checkpoints.',
    'checkpoint_period_learner_steps': 'Learner steps after which a checkpoint '
    'is written even before that time; default: none.',
    'checkpoint_replay': 'Whether checkpoints include the replay tables.',
    'checkpoints_to_keep': 'Number of newest checkpoints to keep.',
    'checkpoint_errors': 'Handling of failures to write a checkpoint. warn: '
    'keep the last one and try again after the period. raise: end the run.',
    'on_divergence': 'Handling of a learner step whose metrics, priorities or '
    'running statistics are not finite. stop: the run ends and the batch is '
    'saved. skip: the step is undone.',
    'timeout_seconds': 'Time-out for waits on other nodes.',
    'stall_seconds': 'Time without progress after which the run ends with a '
    'report; also the time-out for a step or reset of an environment.',
    'max_restarts': 'Maximum number of restarts of a failed process within ten '
    'minutes; 0 for none.',
  },
}
_TABLES = {
  heading: table(
    texts,
    agent='dqn',
    env='catch',
    steps=10_000,
    preset=agents_registry.AUTO,
    stop_at_return=float,
    demonstrations=tuple,
    directory=str,
    fresh=False,
    info=tuple,
    callbacks=tuple,
    evaluation_metrics=tuple,
    topology='single',
  )
  for heading, texts in _TEXTS.items()
}
_TABLES['Topology'] += (
  *TOPOLOGY_FLAGS,
  flag(
    'lp_launch_type',
    f'Nodes of topologies with several nodes run in {_LAUNCH_TYPES}.',
    'local_mt',
  ),
)
_TABLES['Several machines'] = LAUNCHER_FLAGS
TRAIN_FLAGS = tuple(itertools.chain(*_TABLES.values()))
TRAIN_GROUPS = {
  heading: tuple(name for name, *_ in flags)
  for heading, flags in _TABLES.items()
}
TRAIN_NAMES = frozenset(itertools.chain(*TRAIN_GROUPS.values()))
_OF_EXPERIMENT = {
  'agent', 'env', 'preset', 'reward_model', *TRAIN_GROUPS['Topology']
} - {'lp_launch_type'}  # fmt: skip
EXPERIMENT_FLAGS = tuple(one for one in TRAIN_FLAGS if one[0] in _OF_EXPERIMENT)

# Flags of commands on trained agents.
TRAINED_FLAGS = table(
  {
    'directory': 'Directory of the run, instead of the argument DIRECTORY.',
    'from_zoo': 'Released policy of the zoo, <agent>/<environment>, instead of '
    'a directory.',
    'zoo': 'Folder of the policies of --from_zoo, such as `policies` in the '
    'directory of a zoo; default: docs/zoo/policies of the source tree.',
    'best': 'Use the policy of the best evaluation during training instead of '
    'the newest checkpoint.',
    'agent': 'Name of the agent. Needed only for user agents: a module that '
    'only the directory names, as in my_module:MyBuilder, is not imported.',
    'env': 'Name of the environment. Needed only for user environments.',
    'trust': 'Import the modules named in the directory, which runs their '
    'code.',
  },
  directory=str,
  best=False,
  agent=str,
  trust=False,
)
