"""Config of SAC."""

import dataclasses
import functools
from typing import ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class SACConfig(replay_config.HindsightConfig):
  """Settings of SAC, with the sources of their defaults.

  "The paper" is arXiv:1812.05905, which samples uniformly.
  """

  schedulable: ClassVar[tuple[str, ...]] = (
    'conservative_weight',
    'policy_learning_rate',
    'target_entropy',
    'target_update_rate',
    'temperature_learning_rate',
  )
  hidden_sizes: tuple[int, ...] = agent_config.default(
    (256, 256), ': the paper, table 1'
  )
  critic_hidden_sizes: config_checks.Sizes | None = settings.field(
    None, 'Hidden layer sizes of each critic; None for hidden_sizes.'
  )
  body: config_checks.Body = settings.field(
    'mlp',
    "Kind of hidden layers: 'mlp' with ReLU, as in the paper; "
    "'layer_norm_mlp' with layer normalization of the first layer; "
    "'normalized_mlp' with layer normalization of all layers; "
    "'batch_renorm_mlp' with batch renormalization, as in CrossQ, "
    "arXiv:1902.05605; or 'simba', residual blocks of equal sizes: SimBa, "
    'arXiv:2410.09754, has (128,) and for critics (512, 512).',
  )
  critic_body: config_checks.Body | None = settings.field(
    None,
    'Kind of hidden layers of the critics; None for body. DroQ has '
    "'normalized_mlp'.",
  )
  dropout_rate: config_checks.Share = settings.field(
    0.0,
    "Dropout rate of the critics' hidden layers, for 'normalized_mlp': DroQ, "
    'arXiv:2110.02034, has 0.01.',
  )
  num_critics: config_checks.PositiveInt = settings.field(
    2,
    'Number of critics, whose minimum is used: the paper, section 6, has 2; '
    'REDQ, arXiv:2101.05982, has 10.',
  )
  num_target_critics: config_checks.PositiveInt | None = settings.field(
    None,
    'Number of random critics whose minimum is the target, sampled in each '
    'learner step; None for all. REDQ has 2.',
  )
  critics_of_policy: Literal['least', 'mean'] = settings.field(
    'least',
    "Value for the policy loss: 'least' (minimum) of the critics, or their "
    "'mean' as in REDQ.",
  )
  policy_update_period: config_checks.PositiveInt = settings.field(
    1,
    'Learner steps between updates of policy and temperature; REDQ has 20, '
    'with 20 learner steps per environment step.',
  )
  num_quantiles: config_checks.PositiveInt | None = settings.field(
    None,
    'Quantiles of each critic, whose mean is the value (TQC); None for scalar '
    "values. TQC, arXiv:2005.04269, has 25, with critics_of_policy 'mean'.",
  )
  num_dropped_quantiles: config_checks.NonNegativeInt = settings.field(
    0,
    'Number of largest quantiles dropped from targets, per critic: TQC has 2 '
    'for most tasks.',
  )
  conservative_weight: config_checks.NonNegativeFloat | None = settings.field(
    None,
    'Weight of the CQL regularizer, for offline learning; None to disable. '
    'CQL, arXiv:2006.04779, has 5 or 10; large values need more.',
  )
  num_conservative_actions: config_checks.PositiveInt = settings.field(
    10,
    'Actions sampled for the CQL regularizer from each of three '
    'distributions, uniform and the policy in the current and in the next '
    'state: CQL, appendix F.',
  )
  n_step: int = agent_config.default(
    1,
    ': the paper has 1. Longer ones ignore the entropy of intermediate steps',
  )
  discount: float = agent_config.default(0.99, ': the paper, table 1')
  batch_size: int = agent_config.default(256, ': the paper, table 1')
  learning_rate: float = agent_config.default(3e-4, ': the paper, table 1')
  policy_learning_rate: config_checks.PositiveFloat | None = settings.field(
    None, 'Learning rate of Adam for the policy; None for learning_rate.'
  )
  temperature_learning_rate: config_checks.NonNegativeFloat = settings.field(
    3e-4,
    'Learning rate of Adam for the temperature: the paper, table 1; 0 for a '
    'constant temperature.',
  )
  adam_first_decay: config_checks.Share = settings.field(
    0.9,
    'β1 of Adam for policy and critics: arXiv:1412.6980; CrossQ has 0.5.',
  )
  initial_temperature: config_checks.PositiveFloat = settings.field(
    1.0,
    'Initial temperature α, the weight of the entropy relative to rewards.',
  )
  target_entropy: config_checks.FiniteFloat | None = settings.field(
    None,
    'H̄, target entropy of the policy, for actions scaled to [−1, 1]. None '
    'for −1 per dimension of a continuous action: the paper, table 1; for '
    'discrete actions, 0.98 log A: arXiv:1910.07207, appendix B.',
  )
  target_update_rate: config_checks.Rate | None = settings.field(
    0.005,
    'τ, rate of the moving average of the target critics, per learner step: '
    'the paper, table 1. None for no target critics, with current and next '
    'states in one batch, as in CrossQ.',
  )
  num_random_steps: config_checks.NonNegativeInt = settings.field(
    1_000, 'Initial steps with uniformly random actions, over all environments.'
  )
  noise_correlation: config_checks.Share = settings.field(
    0.0, replay_config.NOISE_CORRELATION
  )
  max_replay_size: int = agent_config.default(1_000_000, ': the paper, table 1')

  def __post_init__(self):
    super().__post_init__()
    check = functools.partial(config_checks.check, self)
    most = f'at most num_critics = {self.num_critics}'
    number = self.num_target_critics or 1
    check('num_target_critics', number <= self.num_critics, most)
    body, sizes = self.critic_layers
    for name, kind, layers in (
      ('hidden_sizes', self.body, self.hidden_sizes),
      ('critic_hidden_sizes', body, sizes),
    ):
      has_layers = kind == 'mlp' or len(layers) > 0
      check(name, has_layers, f"not empty for body '{kind}'")
      is_equal = kind != 'simba' or len(set(layers)) == 1
      check(name, is_equal, "equal sizes, one for each block, for body 'simba'")
    check(
      'dropout_rate',
      not self.dropout_rate or body == 'normalized_mlp',
      f"0 for critics of body '{body}': dropout is part of 'normalized_mlp'",
    )
    dropped = self.num_dropped_quantiles
    if self.num_quantiles is None:
      check('num_dropped_quantiles', dropped == 0, '0 without num_quantiles')
      return
    most = f'less than num_quantiles = {self.num_quantiles}'
    check('num_dropped_quantiles', dropped < self.num_quantiles, most)
    uses_mean = self.critics_of_policy == 'mean'
    check('critics_of_policy', uses_mean, "'mean' with quantiles")
    uses_all = self.num_target_critics is None
    check('num_target_critics', uses_all, 'None with quantiles')

  @property
  def critic_layers(self) -> tuple[str, tuple[int, ...]]:
    """Kind (one of `BODIES`) and sizes of the hidden layers of the critics."""
    sizes = self.critic_hidden_sizes
    return (
      self.critic_body or self.body,
      self.hidden_sizes if sizes is None else sizes,
    )

  @property
  def num_critic_outputs(self) -> int:
    """K, outputs of each critic: quantiles or a single value."""
    return self.num_quantiles or 1

  def check_discrete(self) -> None:
    """Raises SettingError if a setting supports only continuous actions."""
    check = functools.partial(config_checks.check, self)
    when = 'for discrete actions'
    check('dropout_rate', not self.dropout_rate, f'0.0 {when}')
    check('num_quantiles', self.num_quantiles is None, f'None {when}')
    has_weight = self.conservative_weight is not None
    check('conservative_weight', not has_weight, f'None {when}')
    has_rate = self.target_update_rate is not None
    check('target_update_rate', has_rate, f'a number {when}')
    check('noise_correlation', not self.noise_correlation, f'0.0 {when}')


PRESETS = {
  # Our settings, with one learner step per 2 steps and normalizers: see
  # docs/results.md.
  'dm_control': {
    'learning_rate': 1e-3,
    'samples_per_insert': 128.0,
    'normalize_observations': True,
    'normalize_rewards': True,
  },
  # arXiv:2101.05982, section 3: 20 learner steps per environment step.
  'redq': {
    'num_critics': 10,
    'num_target_critics': 2,
    'critics_of_policy': 'mean',
    'policy_update_period': 20,
    'samples_per_insert': 5_120.0,
  },
  # arXiv:2110.02034, section 4: the same with two critics.
  'droq': {
    'critic_body': 'normalized_mlp',
    'dropout_rate': 0.01,
    'critics_of_policy': 'mean',
    'policy_update_period': 20,
    'samples_per_insert': 5_120.0,
  },
  # arXiv:2006.04779, appendix F, for offline learning.
  'cql': {
    'conservative_weight': 5.0,
    'hidden_sizes': (256, 256, 256),
    'policy_learning_rate': 1e-4,
  },
  # arXiv:1902.05605, table of settings, except for layers of 2,048.
  'crossq': {
    'body': 'batch_renorm_mlp',
    'target_update_rate': None,
    'learning_rate': 1e-3,
    'temperature_learning_rate': 1e-3,
    'adam_first_decay': 0.5,
    'policy_update_period': 3,
  },
  # arXiv:2005.04269, appendix B.
  'tqc': {
    'num_critics': 5,
    'critic_hidden_sizes': (512, 512, 512),
    'critics_of_policy': 'mean',
    'num_quantiles': 25,
    'num_dropped_quantiles': 2,
  },
}
