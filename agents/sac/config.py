"""Settings of SAC."""

import dataclasses

from repertory.agents import config_checks, experience_replay
from repertory.components import networks


@dataclasses.dataclass(frozen=True)
class SACConfig:
  """Settings of SAC, each with where its default comes from.

  "The paper" is arXiv:1812.05905.
  """

  # Layers of the policy and of each critic: the paper, table 1.
  hidden_sizes: tuple[int, ...] = (256, 256)
  # Convolutions for image leaves: 'nature', 'residual', 'data_efficient' or
  # 'minatar', see docs/environments.md; policy and critics have their own.
  image_torso: str = 'nature'
  # Critics, of whose values the least counts: the paper, section 6, has two.
  num_critics: int = 2
  # Steps a transition spans: the paper. The entropy of steps inside a longer
  # one is left out.
  n_step: int = 1
  # γ: the paper, table 1.
  discount: float = 0.99
  # Items a learner step samples: the paper, table 1.
  batch_size: int = 256
  # Of Adam, for the policy and the critics: the paper, table 1.
  learning_rate: float = 3e-4
  # Of Adam, for the temperature: the paper, table 1; 0 keeps the first one.
  temperature_learning_rate: float = 3e-4
  # Of Adam's denominator: its authors', arXiv:1412.6980.
  adam_epsilon: float = 1e-8
  # Global norm at which gradients are clipped; None for no limit, as in the
  # paper.
  max_gradient_norm: float | None = None
  # α in the first learner step, what a unit of entropy is worth in rewards.
  initial_temperature: float = 1.0
  # H̄, which the policy's entropy is brought to, of actions scaled to [−1, 1];
  # None for −1 for each number of an action: the paper, table 1.
  target_entropy: float | None = None
  # τ, part of the way that the target critics go in a learner step: the paper,
  # table 1.
  target_update_rate: float = 0.005
  # First steps, over all environments, with uniform actions.
  num_random_steps: int = 1_000
  # Sample by priority (arXiv:1511.05952) or uniformly, as the paper does.
  prioritized: bool = False
  # α of the priorities: Ape-X, arXiv:1803.00933, appendix C.
  priority_exponent: float = 0.6
  # β of the importance weights: Ape-X, appendix C.
  importance_exponent: float = 0.4
  # Smallest priority, so that no item is lost for ever.
  min_priority: float = 1e-3
  # Items the table holds: the paper, table 1.
  max_replay_size: int = 1_000_000
  # Items before learning starts: as many as are random.
  min_replay_size: int = 1_000
  # Mean draws per item: with batches of 256, a learner step for every step, as
  # in the paper, table 1.
  samples_per_insert: float = 256.0
  # Lead of acting or learning, in samples; None for 10 % of the samples due at
  # min_replay_size, but at least twice what actors and learner need to take
  # turns.
  error_buffer: float | None = None
  # Batches prepared ahead of the learner.
  prefetch: int = 1
  # An actor's steps between fetches of variables.
  variable_update_period: int = 10
  # Compile the update with XLA (beside an accelerator also the policy): a fifth
  # less work for a CPU with small networks; convolutions are better off
  # without.
  jit_compile: bool = True

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', networks.IMAGE_TORSOS)
    experience_replay.check_settings(self)
    config_checks.check_at_least(
      self, 1, 'num_critics', 'n_step', 'variable_update_period'
    )
    config_checks.check_at_least(
      self, 0, 'temperature_learning_rate', 'num_random_steps', 'prefetch'
    )
    config_checks.check_positive(
      self, 'learning_rate', 'adam_epsilon', 'initial_temperature',
      'max_gradient_norm', 'target_update_rate',
    )  # fmt: skip
    config_checks.check_fraction(self, 'discount', 'target_update_rate')
    config_checks.check_finite(self, 'target_entropy')

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make: all that are open."""
    return self.n_step


PRESETS = {
  # Ours, with a learner step for every other step: see docs/results.md.
  'dm_control': {'learning_rate': 1e-3, 'samples_per_insert': 128.0},
}
