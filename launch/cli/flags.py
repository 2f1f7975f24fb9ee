"""Flags of the commands, with defaults and help texts."""

import dataclasses
from typing import Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.launch.cli import setting_flags
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher
from repertory.launch.topologies import topology

DEFAULTS: dict[str, Any] = {
  field.name: field.default
  for field in dataclasses.fields(experiment_lib.Experiment)
}


def _environments_per_agent() -> str:
  """Describes the default number of environments per actor of each agent."""
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

# Name, kind, default and help text. Flags set the field of `Experiment` of the
# same name, if any.
EXPERIMENT_FLAGS = (
  (
    'agent',
    flags.DEFINE_string,
    'dqn',
    'The agent; `repertory agents` lists them. User agents are '
    'my_module:MyBuilder. Its settings are --config.<name>=<value>; `repertory '
    'agents <agent>` lists them.',
  ),
  (
    'env',
    flags.DEFINE_string,
    'catch',
    'The environment; `repertory environments` lists them. User environments '
    'are my_module:make_environment.',
  ),
  (
    'preset',
    flags.DEFINE_string,
    None,
    'Settings of the agent for a kind of environments, which --config.<name> '
    'may override; `repertory agents <agent>` lists them; default: none.',
  ),
  (
    'reward_model',
    flags.DEFINE_string,
    None,
    'Reward model that changes the rewards of the agent: '
    + ', '.join(one.name for one in reward_models.reward_models())
    + '. Its settings are --reward_model.<name>=<value>; `repertory '
    'reward_models` lists all. --wrap is its earlier name; default: nothing.',
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
    'Number of actors. In single, one actor steps the environments of all.',
  ),
  (
    'environments_per_actor',
    flags.DEFINE_integer,
    DEFAULTS['environments_per_actor'],
    'Number of environments that an actor steps as a batch; default: '
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
    'Total environment steps of the run, over all actors; with offline, '
    'learner steps.',
  ),
  (
    'seed',
    flags.DEFINE_integer,
    DEFAULTS['seed'],
    'Seed of all random numbers.',
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
    + ': training is reproducible from the seed, bit by bit.',
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
    'Nodes of topologies with several nodes run in '
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
    'Directory of logs and checkpoints; default: '
    'runs/<agent>/<environment>/seed_<seed>. An existing run is resumed.',
  ),
  (
    'record',
    flags.DEFINE_string,
    DEFAULTS['record'],
    'Folder to record training episodes to, for --topology=offline; default: '
    'nowhere.',
  ),
  (
    'demonstrations',
    flags.DEFINE_list,
    None,
    'Folders of demonstrations to mix into every replay batch, from --record, '
    '`repertory record` or Minari; default: none.',
  ),
  (
    'demonstration_fraction',
    flags.DEFINE_float,
    DEFAULTS['demonstration_fraction'],
    'Share of --demonstrations in every batch; 0 for none.',
  ),
  (
    'storage',
    flags.DEFINE_string,
    DEFAULTS['storage'],
    'Storage for copies of checkpoints, from which another host can resume: a '
    'path, or a URL that fsspec supports; default: nowhere.',
  ),
  (
    'initial_from',
    flags.DEFINE_string,
    DEFAULTS['initial_from'],
    'Directory of another run, whose newest networks initialize a new run; '
    'default: none.',
  ),
  (
    'info',
    flags.DEFINE_list,
    None,
    "Entries of Gymnasium's info to log, such as distance,success: columns of "
    'the logs of actors and evaluator, with values of the last step of each '
    'episode; default: none.',
  ),
  (
    'episode_rows',
    flags.DEFINE_bool,
    DEFAULTS['episode_rows'],
    'Write logs/episodes.csv, with a row for each training episode.',
  ),
  (
    'callbacks',
    flags.DEFINE_list,
    None,
    'User callbacks, such as my_module:MyObserver: subclasses of '
    'launch.Callback; default: none.',
  ),
  (
    'evaluation_metrics',
    flags.DEFINE_list,
    None,
    'User metrics of evaluations by column, such as moves=my_module:Moves: '
    'subclasses of EpisodeMetric; default: none.',
  ),
  (
    'wandb_project',
    flags.DEFINE_string,
    None,
    'Weights & Biases project to log to, besides files; default: none.',
  ),
  (
    'fresh',
    flags.DEFINE_bool,
    False,
    'Start over; the old directory is moved aside.',
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
    'Number of episodes of an evaluation; 0 for none.',
  ),
  (
    'stop_at_return',
    flags.DEFINE_float,
    None,
    'Mean return of an evaluation at which the run ends early, as if all '
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
    'Learner steps after which a checkpoint is written even before that time; '
    'default: none.',
  ),
  (
    'checkpoint_replay',
    flags.DEFINE_bool,
    DEFAULTS['checkpoint_replay'],
    'Whether checkpoints include the replay tables.',
  ),
  (
    'checkpoints_to_keep',
    flags.DEFINE_integer,
    DEFAULTS['checkpoints_to_keep'],
    'Number of newest checkpoints to keep.',
  ),
  (
    'checkpoint_errors',
    flags.DEFINE_string,
    DEFAULTS['checkpoint_errors'],
    'Handling of failures to write a checkpoint. warn: keep the last one and '
    'try again after the period. raise: end the run.',
  ),
  (
    'timeout_seconds',
    flags.DEFINE_float,
    DEFAULTS['timeout_seconds'],
    'Time-out for waits on other nodes.',
  ),
  (
    'stall_seconds',
    flags.DEFINE_float,
    DEFAULTS['stall_seconds'],
    'Time without progress after which the run ends with a report; also '
    'the time-out for a step or reset of an environment.',
  ),
  (
    'max_restarts',
    flags.DEFINE_integer,
    DEFAULTS['max_restarts'],
    'Maximum number of restarts of a failed process within ten minutes; '
    '0 for none.',
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
# Flags by heading in the help.
TRAIN_GROUPS = {
  'Agent, environment and steps': (
    'agent', 'env', 'steps', 'preset', 'reward_model', 'seed',
    'stop_at_return', 'demonstrations', 'demonstration_fraction',
    'initial_from', 'deterministic', 'eager',
  ),
  'Directories': ('directory', 'fresh', 'record', 'storage'),
  'Logs': ('info', 'episode_rows', 'callbacks', 'wandb_project'),
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

# Flags of commands on trained agents.
TRAINED_FLAGS = (
  (
    'directory',
    flags.DEFINE_string,
    None,
    'Directory of the run, instead of the argument DIRECTORY.',
  ),
  (
    'best',
    flags.DEFINE_bool,
    False,
    'Use the policy of the best evaluation during training instead of '
    'the newest checkpoint.',
  ),
  (
    'agent',
    flags.DEFINE_string,
    None,
    'Name of the agent. Needed only for user agents: a module that only '
    'the directory names, as in my_module:MyBuilder, is not imported.',
  ),
  (
    'env',
    flags.DEFINE_string,
    None,
    'Name of the environment. Needed only for user environments.',
  ),
  (
    'trust',
    flags.DEFINE_bool,
    False,
    'Import the modules named in the directory, which runs their code.',
  ),
)
