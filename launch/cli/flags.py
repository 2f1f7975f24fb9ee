"""Flags of the commands, with defaults and help texts."""

from repertory.agents.reward_models import registry as reward_models
from repertory.launch.cli import setting_flags
from repertory.launch.cli.setting_flags import flag
from repertory.launch.launchers import launcher
from repertory.launch.topologies import topology

TOPOLOGY_FLAGS = setting_flags.make(topology.topologies())
LAUNCHER_FLAGS = setting_flags.make(launcher.launchers())

# Flags set the field of `Experiment` of the same name, if any.
EXPERIMENT_FLAGS = (
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
TRAIN_FLAGS = (
  *EXPERIMENT_FLAGS,
  flag(
    'steps',
    'Total environment steps of the run, over all actors; with offline, '
    'learner steps.',
    10_000,
  ),
  flag('seed', 'Seed of all random numbers.'),
  flag(
    'deterministic',
    'With '
    + ', '.join(
      name
      for name, kind in topology.topologies().items()
      if kind.can_be_deterministic
    )
    + ': training is reproducible from the seed, bit by bit.',
  ),
  flag(
    'eager',
    'With '
    + ', '.join(
      name for name, kind in topology.topologies().items() if kind.can_be_eager
    )
    + ': run policy and update eagerly, so that breakpoint() and print() show '
    'numbers. Much slower.',
  ),
  flag(
    'lp_launch_type',
    'Nodes of topologies with several nodes run in '
    + ', '.join(
      f'{kind.help} ({name})' for name, kind in launcher.launchers().items()
    )
    + '.',
    'local_mt',
  ),
  *LAUNCHER_FLAGS,
  flag(
    'directory',
    'Directory of logs and checkpoints; default: '
    'runs/<agent>/<environment>/seed_<seed>. An existing run is resumed.',
    kind=str,
  ),
  flag(
    'record',
    'Folder to record training episodes to, for --topology=offline; default: '
    'nowhere.',
  ),
  flag(
    'demonstrations',
    'Folders of demonstrations to mix into every replay batch, from --record, '
    '`repertory record` or Minari; default: none.',
    kind=tuple,
  ),
  flag(
    'demonstration_fraction',
    'Share of --demonstrations in every batch; 0 for none.',
  ),
  flag(
    'storage',
    'Storage for copies of checkpoints, from which another host can resume: a '
    'path, or a URL that fsspec supports; default: nowhere.',
  ),
  flag(
    'initial_from',
    'Directory of another run, whose newest networks initialize a new run; '
    'default: none.',
  ),
  flag(
    'info',
    "Entries of Gymnasium's info to log, such as distance,success: columns of "
    'the logs of actors and evaluator, with values of the last step of each '
    'episode; default: none.',
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
    'evaluation_metrics',
    'User metrics of evaluations by column, such as moves=my_module:Moves: '
    'subclasses of EpisodeMetric; default: none.',
    kind=tuple,
  ),
  flag(
    'wandb_project',
    'Weights & Biases project to log to, besides files; default: none.',
  ),
  flag('fresh', 'Start over; the old directory is moved aside.', False),
  flag(
    'evaluation_period',
    'Environment steps between evaluations; default: a tenth of --steps.',
  ),
  flag(
    'evaluation_episodes', 'Number of episodes of an evaluation; 0 for none.'
  ),
  flag(
    'stop_at_return',
    'Mean return of an evaluation at which the run ends early, as if all '
    'steps had been taken; default: none.',
    kind=float,
  ),
  flag('checkpoint_period_seconds', 'Time between checkpoints.'),
  flag(
    'checkpoint_period_learner_steps',
    'Learner steps after which a checkpoint is written even before that time; '
    'default: none.',
  ),
  flag('checkpoint_replay', 'Whether checkpoints include the replay tables.'),
  flag('checkpoints_to_keep', 'Number of newest checkpoints to keep.'),
  flag(
    'checkpoint_errors',
    'Handling of failures to write a checkpoint. warn: keep the last one and '
    'try again after the period. raise: end the run.',
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
  flag(
    'on_divergence',
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
