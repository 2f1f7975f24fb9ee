"""Base classes of configs of agents with replay."""

import dataclasses
import math
from typing import ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.components.config import import_paths, settings

# Help of the field `noise_correlation`.
NOISE_CORRELATION = (
  'Correlation of the exploration noise of successive steps, for tasks that '
  'need the same action for a while: an Ornstein-Uhlenbeck process in discrete '
  'time, as in arXiv:1509.02971, section 7, which has 0.85; 0 for independent '
  'noise.'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayConfig(agent_config.AgentConfig):
  """Settings of an agent with replay.

  The minimum error buffer is checked with the table.
  """

  schedulable: ClassVar[tuple[str, ...]] = ('importance_exponent',)
  batch_size: int = agent_config.default(256)
  prioritized: bool = settings.field(
    False, 'Use prioritized replay, arXiv:1511.05952, instead of uniform.'
  )
  num_sgd_steps_per_step: config_checks.PositiveInt = settings.field(
    1,
    'Gradient steps per learner step, each with its own batch. Values above 1 '
    'are faster for small networks; the replay ratio is unchanged. Priorities '
    'are updated after all gradient steps. Settings in learner steps then '
    'count gradient steps, but schedules learner steps.',
  )
  priority_exponent: config_checks.NonNegativeFloat = settings.field(
    0.6, 'Priority exponent α: Ape-X, arXiv:1803.00933, appendix C.'
  )
  importance_exponent: config_checks.Fraction = settings.field(
    0.4, 'Importance weight exponent β: Ape-X, appendix C.'
  )
  importance_anneal_learner_steps: config_checks.PositiveInt | None = (
    settings.field(
      None,
      'Learner steps over which β is annealed linearly to 1; None for a '
      'constant β. Rainbow, arXiv:1710.02298, table 1, anneals it over the '
      'run.',
    )
  )
  min_priority: config_checks.PositiveFloat = settings.field(
    1e-3, 'Minimum priority, so that every item can be sampled again.'
  )
  max_replay_size: config_checks.PositiveInt = settings.field(
    1_000_000, 'Capacity of the replay table, in items.'
  )
  min_replay_size: config_checks.PositiveInt = settings.field(
    1_000, 'Items in the table before learning starts.'
  )
  samples_per_insert: config_checks.PositiveFloat = settings.field(
    256.0,
    'Replay ratio, average samples per item; the batch size for one gradient '
    'step per item.',
  )
  error_buffer: float | None = settings.field(
    None,
    'Error buffer of the rate limiter, in samples: how far acting or learning '
    'may run ahead. None for 10 % of the samples due at min_replay_size, but '
    'at least twice the minimum.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'normalize_rewards',
      not (self.normalize_rewards and self.discount == 1),
      'False with discount 1, for which returns have no deviation',
    )

  @property
  def items_per_learner_step(self) -> int:
    """Items per learner step."""
    return self.batch_size * self.num_sgd_steps_per_step

  @property
  def steps_until_xla_pays(self) -> int:
    return math.ceil(self.xla_pays_after / self.num_sgd_steps_per_step)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransitionReplayConfig(ReplayConfig, agent_config.NetworkConfig):
  """Settings of an agent with networks and replay of n-step transitions."""

  n_step: config_checks.PositiveInt = settings.field(
    1, 'n of n-step transitions.'
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HindsightConfig(TransitionReplayConfig):
  """Settings of an agent that may learn from achieved goals."""

  hindsight_goals: config_checks.NonNegativeInt = settings.field(
    0,
    'k, copies of each transition with goals that its episode achieved; 0 for '
    'none. HER, arXiv:1707.01495, has 4. Each step makes 1 + k items.',
  )
  hindsight_strategy: Literal['future', 'final', 'episode'] = settings.field(
    'future',
    "Source of these goals: states after the transition ('future'), the last "
    "state ('final'), or any state of the episode ('episode').",
  )
  hindsight_reward: str | None = settings.field(
    None,
    'Import path, module:function, of rewards [N] of achieved and desired '
    "goals [N, ...]; None for the environment's compute_reward.",
  )

  def __post_init__(self):
    super().__post_init__()
    path = self.hindsight_reward
    config_checks.check(
      self,
      'hindsight_reward',
      path is None or import_paths.SYNTAX.fullmatch(path) is not None,
      'module:function or None',
    )
    for name, value in (
      ('hindsight_strategy', 'future'),
      ('hindsight_reward', None),
    ):
      config_checks.check(
        self,
        name,
        self.hindsight_goals > 0 or getattr(self, name) == value,
        f'{value!r} without hindsight_goals',
      )
