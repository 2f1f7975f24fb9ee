"""Settings of D4PG."""

import dataclasses

from repertory.agents import config_checks, experience_replay
from repertory.components import networks


@dataclasses.dataclass(frozen=True)
class D4PGConfig:
  """Settings of D4PG, each with where its default comes from.

  "The paper" is arXiv:1804.08617. The defaults suit small environments with
  vector observations.
  """

  # Layers of the policy and of the critic, the first one normalized; Acme has
  # (256, 256, 256) and (512, 512, 256).
  hidden_sizes: tuple[int, ...] = (256, 256)
  # Convolutions for image leaves: 'nature', 'residual', 'data_efficient' or
  # 'minatar', see docs/environments.md; policy and critic have their own.
  image_torso: str = 'nature'
  # Atoms of the critic's distribution: C51, arXiv:1707.06887, section 5.
  num_atoms: int = 51
  # Least value that the critic can tell, the smallest atom: Acme's, for rewards
  # in [−1, 1]. Values beyond are cut off.
  vmin: float = -150.0
  # Largest value that the critic can tell, the largest atom.
  vmax: float = 150.0
  # Steps a transition spans: the paper, section 4.
  n_step: int = 5
  # γ: the paper, appendix A.
  discount: float = 0.99
  # Items a learner step samples: the paper, section 4.
  batch_size: int = 256
  # Of Adam, for policy and critic; for small networks larger than the paper's
  # 1e-4.
  learning_rate: float = 3e-4
  # Of Adam's denominator: its authors', arXiv:1412.6980.
  adam_epsilon: float = 1e-8
  # Global norm at which gradients are clipped, those of policy and of critic
  # each by itself: Acme's.
  max_gradient_norm: float | None = 40.0
  # Norm at which ∂q/∂a of an item is clipped; None for no limit, as in the
  # paper. Acme has 1.
  max_action_gradient_norm: float | None = None
  # Learner steps between copies to the target networks: Acme's.
  target_update_period: int = 100
  # Deviation of the noise that is added to actions scaled to [−1, 1]: the
  # paper, section 4.
  sigma: float = 0.3
  # Sample by priority (arXiv:1511.05952) or uniformly; the paper finds little
  # use in priorities.
  prioritized: bool = False
  # α of the priorities: Ape-X, arXiv:1803.00933, appendix C.
  priority_exponent: float = 0.6
  # β of the importance weights: Ape-X, appendix C.
  importance_exponent: float = 0.4
  # Smallest priority, so that no item is lost for ever.
  min_priority: float = 1e-3
  # Items the table holds: the paper, section 4.
  max_replay_size: int = 1_000_000
  # Items before learning starts.
  min_replay_size: int = 1_000
  # Mean draws per item: with batches of 256, a learner step every 4 steps. Acme
  # takes one every 8.
  samples_per_insert: float = 64.0
  # Lead of acting or learning, in samples; None for 10 % of the samples due at
  # min_replay_size, but at least twice what actors and learner need to take
  # turns.
  error_buffer: float | None = None
  # Batches prepared ahead of the learner.
  prefetch: int = 1
  # An actor's steps between fetches of variables.
  variable_update_period: int = 10
  # Compile the update with XLA (beside an accelerator also the policy): a fifth
  # less work for a CPU; on one with idle cores, graph mode may be done sooner.
  jit_compile: bool = True

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check(
      self, 'hidden_sizes', len(self.hidden_sizes) >= 1, 'at least one number'
    )
    config_checks.check_one_of(self, 'image_torso', networks.IMAGE_TORSOS)
    config_checks.check_at_least(self, 2, 'num_atoms')
    experience_replay.check_settings(self)
    config_checks.check_at_least(
      self, 1, 'n_step', 'target_update_period', 'variable_update_period'
    )
    config_checks.check_at_least(self, 0, 'sigma', 'prefetch')
    config_checks.check_positive(
      self, 'learning_rate', 'adam_epsilon', 'max_gradient_norm',
      'max_action_gradient_norm',
    )  # fmt: skip
    config_checks.check_fraction(self, 'discount')
    config_checks.check_finite(self, 'vmin', 'vmax')
    is_above = 0 < self.vmax - self.vmin <= config_checks.MAX
    config_checks.check(
      self, 'vmax', is_above, f'above vmin = {self.vmin}, by a finite number'
    )

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make: all that are open."""
    return self.n_step


PRESETS: dict[str, dict] = {}
