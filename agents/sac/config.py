"""Settings of SAC."""

import dataclasses

from repertory.agents import config_checks, replay_config
from repertory.components import choices, settings

# What is not there for discrete actions, and what says so.
_WITHOUT = {
  'dropout_rate': 0.0,
  'num_quantiles': None,
  'conservative_weight': None,
}


@dataclasses.dataclass(frozen=True)
class SACConfig(replay_config.ReplayConfig):
  """Settings of SAC, each with where its default comes from.

  "The paper" is arXiv:1812.05905.
  """

  hidden_sizes: tuple[int, ...] = settings.field(
    (256, 256), 'Layers of the policy and of each critic: the paper, table 1.'
  )
  critic_hidden_sizes: tuple[int, ...] | None = settings.field(
    None, 'Layers of each critic, if they are others; None for hidden_sizes.'
  )
  body: str = settings.field(
    'mlp',
    "What the layers are: 'mlp' with a ReLU after each, as in the paper; "
    "'layer_norm_mlp', whose first is normalized; 'normalized_mlp', all of "
    "which are; 'batch_renorm_mlp', normalized over the batch, as in CrossQ, "
    "arXiv:1902.05605; or 'simba', residual blocks, one of each size, all the "
    'same: SimBa, arXiv:2410.09754, has (128,) and for critics (512, 512).',
  )
  critic_body: str | None = settings.field(
    None,
    "What those of critics are; None for body. DroQ has 'normalized_mlp'.",
  )
  dropout_rate: float = settings.field(
    0.0,
    "Share of the numbers in the critics' layers that are left out, drawn "
    "anew each time: DroQ, arXiv:2110.02034, has 0.01; with 'normalized_mlp'.",
  )
  image_torso: str = settings.field(
    'auto',
    "Convolutions for image leaves: 'nature', 'residual', 'data_efficient', "
    "'minatar' or, by the size of each, 'auto', see "
    'docs/environments.md; policy and critics have their own.',
  )
  num_critics: int = settings.field(
    2,
    'Critics, of whose values the least counts: the paper, section 6, has two; '
    'REDQ, arXiv:2101.05982, has 10.',
  )
  num_target_critics: int | None = settings.field(
    None,
    'Critics that are drawn anew in each learner step, so that the least of '
    'their values is the target; None for all. REDQ has 2.',
  )
  critics_of_policy: str = settings.field(
    'least',
    "Which of the critics' values the policy follows: 'least', or 'mean' as "
    'in REDQ.',
  )
  policy_update_period: int = settings.field(
    1,
    'Learner steps from one of the policy and of the temperature to the next; '
    'REDQ has 20, with as many for each step.',
  )
  num_quantiles: int | None = settings.field(
    None,
    'Quantiles of the return that each critic tells, of which the mean counts; '
    'None for a value. TQC, arXiv:2005.04269, has 25, with critics_of_policy '
    "'mean'.",
  )
  num_dropped_quantiles: int = settings.field(
    0,
    'Quantiles of targets that are left out for each critic, the largest of '
    'all: TQC has 2 for most tasks.',
  )
  conservative_weight: float | None = settings.field(
    None,
    'How much values of actions that are not in the data are held down, for '
    'learning from data alone; None for not at all. CQL, arXiv:2006.04779, has '
    '5 or 10; large values need more.',
  )
  num_conservative_actions: int = settings.field(
    10,
    'Actions that are held down: as many uniform ones as of the policy in the '
    'state and in the next: CQL, appendix F.',
  )
  n_step: int = settings.field(
    1,
    'Steps a transition spans: the paper. The entropy of steps inside a longer '
    'one is left out.',
  )
  discount: float = settings.field(0.99, 'γ: the paper, table 1.')
  batch_size: int = settings.field(
    256, 'Items a learner step samples: the paper, table 1.'
  )
  learning_rate: float = settings.field(
    3e-4,
    'Step size of Adam for the policy and the critics: the paper, table 1.',
  )
  policy_learning_rate: float | None = settings.field(
    None, 'Step size of Adam for the policy alone; None for learning_rate.'
  )
  temperature_learning_rate: float = settings.field(
    3e-4,
    'Step size of Adam for the temperature: the paper, table 1; 0 keeps the '
    'first one.',
  )
  adam_first_decay: float = settings.field(
    0.9,
    "β1 of Adam for the policy and the critics: its authors', "
    'arXiv:1412.6980; CrossQ has 0.5.',
  )
  adam_epsilon: float = settings.field(
    1e-8, "Added to Adam's denominator: its authors', arXiv:1412.6980."
  )
  max_gradient_norm: float | None = settings.field(
    None,
    'Global norm at which gradients are clipped; None for no limit, as in the '
    'paper.',
  )
  initial_temperature: float = settings.field(
    1.0,
    'α in the first learner step, what a unit of entropy is worth in rewards.',
  )
  target_entropy: float | None = settings.field(
    None,
    "H̄, which the policy's entropy is brought to, of actions scaled to [−1, "
    '1]; None for −1 for each number of an action: the paper, table 1; of '
    'discrete ones, for 0.98 log A: arXiv:1910.07207, appendix B.',
  )
  target_update_rate: float | None = settings.field(
    0.005,
    'τ, part of the way that the target critics go in a learner step: the '
    'paper, table 1; None for none of them: critics rate what was done and '
    'what comes next in one batch, as in CrossQ.',
  )
  num_random_steps: int = settings.field(
    1_000, 'First steps, over all environments, with uniform actions.'
  )
  prioritized: bool = settings.field(
    False,
    'Sample by priority (arXiv:1511.05952) or uniformly, as the paper does.',
  )
  max_replay_size: int = settings.field(
    1_000_000, 'Items the table holds: the paper, table 1.'
  )
  min_replay_size: int = settings.field(
    1_000, 'Items before learning starts: as many as are random.'
  )
  samples_per_insert: float = settings.field(
    256.0,
    'Mean draws per item: with batches of 256, a learner step for every step, '
    'as in the paper, table 1.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_sizes(self, 'critic_hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_one_of(self, 'critics_of_policy', ('least', 'mean'))
    config_checks.check_one_of(self, 'body', choices.BODIES)
    config_checks.check_one_of(self, 'critic_body', (None, *choices.BODIES))
    config_checks.check_at_least(
      self, 1, 'num_critics', 'num_target_critics', 'policy_update_period',
      'n_step', 'num_conservative_actions',
    )  # fmt: skip
    config_checks.check(
      self,
      'num_target_critics',
      (self.num_target_critics or 1) <= self.num_critics,
      f'at most num_critics = {self.num_critics}',
    )
    config_checks.check_at_least(
      self, 0, 'temperature_learning_rate', 'num_random_steps',
      'num_dropped_quantiles', 'conservative_weight',
    )  # fmt: skip
    self._check_layers()
    self._check_quantiles()
    config_checks.check_positive(
      self, 'adam_epsilon', 'initial_temperature', 'policy_learning_rate',
      'max_gradient_norm', 'target_update_rate',
    )  # fmt: skip
    config_checks.check_fraction(self, 'target_update_rate')
    config_checks.check(
      self, 'adam_first_decay', 0 <= self.adam_first_decay < 1, 'in [0, 1)'
    )
    config_checks.check_finite(self, 'target_entropy')

  @property
  def critic_layers(self) -> tuple[str, tuple[int, ...]]:
    """What the layers of each critic are, one of `BODIES`, and their sizes."""
    sizes = self.critic_hidden_sizes
    return (
      self.critic_body or self.body,
      self.hidden_sizes if sizes is None else sizes,
    )

  @property
  def num_critic_outputs(self) -> int:
    """K, the numbers that each critic gives: quantiles, or one value."""
    return self.num_quantiles or 1

  def check_discrete(self) -> None:
    """Refuses settings that there are for continuous actions only.

    Raises:
      SettingError: Naming the first of them.
    """
    for name, value in _WITHOUT.items():
      holds = getattr(self, name) == value
      config_checks.check(self, name, holds, f'{value!r} for discrete actions')
    config_checks.check(
      self,
      'target_update_rate',
      self.target_update_rate is not None,
      'a number for discrete actions',
    )

  def _check_layers(self) -> None:
    body, sizes = self.critic_layers
    self._check_body('hidden_sizes', self.body, self.hidden_sizes)
    self._check_body('critic_hidden_sizes', body, sizes)
    config_checks.check(
      self, 'dropout_rate', 0 <= self.dropout_rate < 1, 'in [0, 1)'
    )
    config_checks.check(
      self,
      'dropout_rate',
      not self.dropout_rate or body == 'normalized_mlp',
      f"0 for critics of body '{body}': dropout is part of 'normalized_mlp'",
    )

  def _check_body(self, name: str, body: str, sizes: tuple[int, ...]) -> None:
    config_checks.check(
      self,
      name,
      body == 'mlp' or len(sizes) > 0,
      f"not empty for body '{body}'",
    )
    config_checks.check(
      self,
      name,
      body != 'simba' or len(set(sizes)) == 1,
      "one size, as often as there are blocks, for body 'simba'",
    )

  def _check_quantiles(self) -> None:
    if self.num_quantiles is None:
      config_checks.check(
        self,
        'num_dropped_quantiles',
        self.num_dropped_quantiles == 0,
        '0 without num_quantiles',
      )
      return
    config_checks.check_at_least(self, 1, 'num_quantiles')
    config_checks.check(
      self,
      'num_dropped_quantiles',
      self.num_dropped_quantiles < self.num_quantiles,
      f'less than num_quantiles = {self.num_quantiles}',
    )
    for name, value in (
      ('critics_of_policy', 'mean'),
      ('num_target_critics', None),
    ):
      config_checks.check(
        self, name, getattr(self, name) == value, f'{value!r} with quantiles'
      )


PRESETS = {
  # Ours, with a learner step for every other step: see docs/results.md.
  'dm_control': {'learning_rate': 1e-3, 'samples_per_insert': 128.0},
  # arXiv:2101.05982, section 3: 20 learner steps for every step.
  'redq': {
    'num_critics': 10,
    'num_target_critics': 2,
    'critics_of_policy': 'mean',
    'policy_update_period': 20,
    'samples_per_insert': 5_120.0,
  },
  # arXiv:2110.02034, section 4: as many learner steps, of two critics.
  'droq': {
    'critic_body': 'normalized_mlp',
    'dropout_rate': 0.01,
    'critics_of_policy': 'mean',
    'policy_update_period': 20,
    'samples_per_insert': 5_120.0,
  },
  # arXiv:2006.04779, appendix F, for learning from data alone.
  'cql': {
    'conservative_weight': 5.0,
    'hidden_sizes': (256, 256, 256),
    'policy_learning_rate': 1e-4,
  },
  # arXiv:1902.05605, table of settings, but for layers of 2,048.
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
