"""The flags of the commands, each with its default and its text."""

import dataclasses
from typing import Any

from absl import flags

from repertory.agents import registry as agents_registry
from repertory.agents.wrappers import registry as wrappers_registry
from repertory.launch import experiment as experiment_lib
from repertory.launch.commands import setting_flags
from repertory.launch.launchers import launcher
from repertory.launch.topologies import topology

DEFAULTS: dict[str, Any] = {
  field.name: field.default
  for field in dataclasses.fields(experiment_lib.Experiment)
}


def _environments_per_agent() -> str:
  """Says how many environments an actor of each agent steps by default."""
  names: dict[int, list[str]] = {}
  for agent in agents_registry.agents():
    number = agent.config_class.default_environments_per_actor
    names.setdefault(number, []).append(agent.name)
  usual = max(names, key=lambda number: len(names[number]))
  others = [
    f'{number} for {", ".join(names[number])}'
    for number in sorted(names)
    if number != usual
  ]
  return '; '.join([*others, f'{usual} for others'])


TOPOLOGY_FLAGS = setting_flags.make(topology.topologies(), 'topology')
LAUNCHER_FLAGS = setting_flags.make(launcher.launchers(), 'launcher')

# Name, kind, default and text. Those named like a field of `Experiment` set it.
EXPERIMENT_FLAGS = (
  (
    'agent',
    flags.DEFINE_string,
    'dqn',
    'The agent; `repertory agents` lists them. One of your own is '
    'my_module:MyBuilder. Its settings are --config.<name>=<value>; `repertory '
    'agents <agent>` lists those.',
  ),
  (
    'env',
    flags.DEFINE_string,
    'catch',
    'The environment; `repertory environments` lists them. One of your own is '
    'my_module:make_environment.',
  ),
  (
    'preset',
    flags.DEFINE_string,
    None,
    'Settings of the agent for a kind of environments, which --config.<name> '
    'may override; `repertory agents <agent>` lists them; default: none.',
  ),
  (
    'wrap',
    flags.DEFINE_string,
    None,
    'What gives the agent other rewards: '
    + ', '.join(one.name for one in wrappers_registry.wrappers())
    + '. Its settings are --wrap.<name>=<value>; `repertory wrappers` lists '
    'all; default: nothing.',
  ),
  (
    'topology',
    flags.DEFINE_string,
    'single',
    ' '.join(
      f'{name}: {kind.help}.' for name, kind in topology.topologies().items()
    ),
  ),
  (
    'num_actors',
    flags.DEFINE_integer,
    DEFAULTS['num_actors'],
    'Nodes that act. In single, one actor drives the environments of all.',
  ),
  (
    'environments_per_actor',
    flags.DEFINE_integer,
    DEFAULTS['environments_per_actor'],
    'Environments that an actor steps together; default: '
    f'{_environments_per_agent()}.',
  ),
  *TOPOLOGY_FLAGS,
)
TRAIN_FLAGS = (
  *EXPERIMENT_FLAGS,
  (
    'steps',
    flags.DEFINE_integer,
    10_000,
    'Environment steps at which the run ends, over all actors; with offline, '
    'learner steps.',
  ),
  (
    'seed',
    flags.DEFINE_integer,
    DEFAULTS['seed'],
    'Seeds all random numbers that can be seeded.',
  ),
  (
    'deterministic',
    flags.DEFINE_bool,
    DEFAULTS['deterministic'],
    'With '
    + ', '.join(
      name
      for name, kind in topology.topologies().items()
      if kind.can_be_deterministic
    )
    + ': all that is learned follows from the seed, to the last bit.',
  ),
  (
    'eager',
    flags.DEFINE_bool,
    DEFAULTS['eager'],
    'With '
    + ', '.join(
      name for name, kind in topology.topologies().items() if kind.can_be_eager
    )
    + ': run policy and update eagerly, so that breakpoint() and print() show '
    'numbers. Much slower.',
  ),
  (
    'lp_launch_type',
    flags.DEFINE_string,
    'local_mt',
    'Nodes of a topology with several run in '
    + ', '.join(
      f'{kind.help} ({name})' for name, kind in launcher.launchers().items()
    )
    + '.',
  ),
  *LAUNCHER_FLAGS,
  (
    'directory',
    flags.DEFINE_string,
    None,
    'Where logs and checkpoints go; default: '
    'runs/<agent>/<environment>/seed_<seed>. A run that is there is resumed.',
  ),
  (
    'record',
    flags.DEFINE_string,
    DEFAULTS['record'],
    'Folder to write all that is lived in training to, as episodes that '
    '--topology=offline learns from; default: nowhere.',
  ),
  (
    'demonstrations',
    flags.DEFINE_list,
    None,
    'Folders of which every batch of an agent that replays has a share, of '
    '--record, `repertory record` or Minari; default: none.',
  ),
  (
    'demonstration_fraction',
    flags.DEFINE_float,
    DEFAULTS['demonstration_fraction'],
    'Share of every batch that is of --demonstrations; 0 for none.',
  ),
  (
    'storage',
    flags.DEFINE_string,
    DEFAULTS['storage'],
    'Where checkpoints are kept besides, for another host to go on from: a '
    'path, or a URL that fsspec knows; default: nowhere.',
  ),
  (
    'initial_from',
    flags.DEFINE_string,
    DEFAULTS['initial_from'],
    'Directory of another run, with whose newest networks a new run begins; '
    'default: none.',
  ),
  (
    'info',
    flags.DEFINE_list,
    None,
    "Entries of Gymnasium's info to log, such as distance,success: columns of "
    'the logs of actors and evaluator with the values in the last step of an '
    'episode; default: none.',
  ),
  (
    'episode_rows',
    flags.DEFINE_bool,
    DEFAULTS['episode_rows'],
    'Write logs/episodes.csv, with a row for each training episode.',
  ),
  (
    'observers',
    flags.DEFINE_list,
    None,
    'Observers of your own, such as my_module:MyObserver: subclasses of '
    'launch.Observer; default: none.',
  ),
  (
    'evaluation_metrics',
    flags.DEFINE_list,
    None,
    'Metrics of your own that evaluations record, such as moves=my_module:'
    'Moves: subclasses of EpisodeMetric by column; default: none.',
  ),
  (
    'wandb_project',
    flags.DEFINE_string,
    None,
    'Project of Weights & Biases to log to, besides the files; default: none.',
  ),
  (
    'fresh',
    flags.DEFINE_bool,
    False,
    'Start over; what is in the directory is moved aside.',
  ),
  (
    'evaluation_period',
    flags.DEFINE_integer,
    DEFAULTS['evaluation_period'],
    'Environment steps between evaluations; default: a tenth of --steps.',
  ),
  (
    'evaluation_episodes',
    flags.DEFINE_integer,
    DEFAULTS['evaluation_episodes'],
    'Episodes of an evaluation; 0 for none.',
  ),
  (
    'stop_at_return',
    flags.DEFINE_float,
    None,
    'Mean return of an evaluation that is enough: the run ends then, as if all '
    'steps had been taken; default: none.',
  ),
  (
    'checkpoint_period_seconds',
    flags.DEFINE_float,
    DEFAULTS['checkpoint_period_seconds'],
    'Time between checkpoints.',
  ),
  (
    'checkpoint_period_learner_steps',
    flags.DEFINE_integer,
    DEFAULTS['checkpoint_period_learner_steps'],
    'Updates after which a checkpoint comes even if that time is not over; '
    'default: none.',
  ),
  (
    'checkpoint_replay',
    flags.DEFINE_bool,
    DEFAULTS['checkpoint_replay'],
    'Whether checkpoints hold the replay tables.',
  ),
  (
    'checkpoints_to_keep',
    flags.DEFINE_integer,
    DEFAULTS['checkpoints_to_keep'],
    'The newest so many are kept.',
  ),
  (
    'checkpoint_errors',
    flags.DEFINE_string,
    DEFAULTS['checkpoint_errors'],
    'What a checkpoint that cannot be written does: warn keeps the last one '
    'and tries again after the period, raise ends the run.',
  ),
  (
    'timeout_seconds',
    flags.DEFINE_float,
    DEFAULTS['timeout_seconds'],
    'After how long a wait on another node is an error.',
  ),
  (
    'stall_seconds',
    flags.DEFINE_float,
    DEFAULTS['stall_seconds'],
    'After how long without any progress the run is ended, with a report; also '
    'the longest that a step or reset of an environment may take.',
  ),
  (
    'max_restarts',
    flags.DEFINE_integer,
    DEFAULTS['max_restarts'],
    'How often within ten minutes a process that has ended is started again; '
    '0 for never.',
  ),
  (
    'on_divergence',
    flags.DEFINE_string,
    DEFAULTS['on_divergence'],
    'Handling of a learner step whose metrics, priorities or running '
    'statistics are not finite. stop: the run ends and the batch is saved. '
    'skip: the step is undone.',
  ),
)
TRAIN_NAMES = frozenset(name for name, *_ in TRAIN_FLAGS)
# Names by heading, as the help shows them.
TRAIN_GROUPS = {
  'Agent, environment and steps': (
    'agent', 'env', 'steps', 'preset', 'wrap', 'seed', 'stop_at_return',
    'demonstrations', 'demonstration_fraction', 'initial_from',
    'deterministic', 'eager',
  ),
  'Directories': ('directory', 'fresh', 'record', 'storage'),
  'Logs': ('info', 'episode_rows', 'observers', 'wandb_project'),
  'Evaluation': (
    'evaluation_period', 'evaluation_episodes', 'evaluation_metrics',
  ),
  'Topology': (
    'topology', 'num_actors', 'environments_per_actor', 'lp_launch_type',
    *(name for name, *_ in TOPOLOGY_FLAGS),
  ),
  'Several machines': tuple(name for name, *_ in LAUNCHER_FLAGS),
  'Checkpoints and failures': (
    'checkpoint_period_seconds', 'checkpoint_period_learner_steps',
    'checkpoint_replay', 'checkpoints_to_keep', 'checkpoint_errors',
    'on_divergence', 'timeout_seconds', 'stall_seconds', 'max_restarts',
  ),
}  # fmt: skip

# Of commands that take what was trained.
TRAINED_FLAGS = (
  (
    'directory',
    flags.DEFINE_string,
    None,
    'Directory of the run, in place of the argument DIRECTORY.',
  ),
  (
    'best',
    flags.DEFINE_bool,
    False,
    'Take the policy that did best in an evaluation of training, in place of '
    'the newest checkpoint.',
  ),
  (
    'agent',
    flags.DEFINE_string,
    None,
    'Name of the agent. Needed only for one of your own: a module that only '
    'the directory names, as in my_module:MyBuilder, is not imported.',
  ),
  (
    'env',
    flags.DEFINE_string,
    None,
    'Name of the environment. Needed only for one of your own.',
  ),
  (
    'trust',
    flags.DEFINE_bool,
    False,
    'Import the modules that the directory names, which runs their code.',
  ),
)
