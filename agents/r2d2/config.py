"""Settings of R2D2."""

import dataclasses

from repertory.agents import config_checks, experience_replay
from repertory.components import networks


@dataclasses.dataclass(frozen=True)
class R2D2Config:
  """Settings of R2D2, each with where its default comes from.

  The defaults suit small environments with vector observations; "the paper" is
  https://openreview.net/forum?id=r1lyTjAqYX.
  """

  # Layers of the network before its core.
  hidden_sizes: tuple[int, ...] = (64,)
  # Convolutions for image leaves: 'nature', 'residual', 'data_efficient' or
  # 'minatar', see docs/environments.md.
  image_torso: str = 'nature'
  # Memory: 'lstm' (the paper, section 2.3) or 'gru'.
  core: str = 'lstm'
  # Size of the memory's output; the paper has 512.
  core_size: int = 64
  # Whether the network sees the action and the reward before each observation:
  # the paper, appendix.
  previous_action_and_reward: bool = True
  # Separate streams for state value and advantages: the paper, section 2.3.
  dueling: bool = True
  # Steps at the start of a sequence that only warm up the memory; the paper
  # has 40.
  burn_in_length: int = 4
  # Steps of a sequence to learn from; the paper has 80.
  unroll_length: int = 16
  # Steps between the starts of sequences; None for half of `unroll_length`, as
  # in the paper.
  sequence_period: int | None = None
  # Whether sequences go on over the end of episodes; else the last one of an
  # episode is padded. The paper: "never crossing episode boundaries".
  across_episodes: bool = False
  # n of the returns, at most `unroll_length`: the paper, section 2.3.
  n_step: int = 5
  # γ: the paper, section 2.3.
  discount: float = 0.997
  # ε of the value rescaling; the paper, section 2.3. None for no rescaling.
  rescale_epsilon: float | None = 1e-3
  # Sequences a learner step samples; the paper has 64.
  batch_size: int = 32
  # Of Adam; for small networks larger than the paper's 1e-4.
  learning_rate: float = 1e-3
  # Of Adam's denominator: the paper, appendix.
  adam_epsilon: float = 1e-3
  # Global norm at which gradients are clipped: SEED RL's R2D2.
  max_gradient_norm: float = 80.0
  # Learner steps between copies to the target network; the paper has 2,500.
  target_update_period: int = 100
  # Sample by priority or uniformly.
  prioritized: bool = True
  # α of the priorities: the paper, section 2.3.
  priority_exponent: float = 0.9
  # β of the importance weights: the paper, section 2.3.
  importance_exponent: float = 0.6
  # η, share of the largest error in a sequence's priority: the paper, 2.3.
  max_priority_share: float = 0.9
  # Smallest priority, so that no sequence is lost for ever.
  min_priority: float = 1e-3
  # Largest ε of the ladder over the environments: Ape-X, arXiv:1803.00933.
  epsilon_base: float = 0.4
  # Steepness of the ladder: Ape-X, section 4.1.
  epsilon_exponent: float = 7.0
  # Steps, over all environments, in which ε falls from 1 to its place on the
  # ladder, for small environments; the paper has none.
  epsilon_anneal_steps: int = 3_000
  # ε of the evaluation policy.
  evaluation_epsilon: float = 0.0
  # Sequences the table holds; the paper has 100,000.
  max_replay_size: int = 20_000
  # Sequences before learning starts.
  min_replay_size: int = 100
  # Mean draws per sequence.
  samples_per_insert: float = 8.0
  # Lead of acting or learning, in samples; None for 10 % of the samples due at
  # min_replay_size, but at least twice what actors and learner need to take
  # turns.
  error_buffer: float | None = None
  # Batches prepared ahead of the learner.
  prefetch: int = 1
  # An actor's steps between fetches of variables.
  variable_update_period: int = 10
  # Compile policy and update with XLA: faster for small networks on a CPU;
  # convolutions are better off without.
  jit_compile: bool = True

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', networks.IMAGE_TORSOS)
    cores = [core for core in networks.CORES if core != 'none']
    config_checks.check_one_of(self, 'core', cores)
    experience_replay.check_settings(self)
    config_checks.check_at_least(
      self, 1, 'core_size', 'unroll_length', 'n_step', 'target_update_period',
      'variable_update_period',
    )  # fmt: skip
    config_checks.check_at_least(
      self, 0, 'burn_in_length', 'epsilon_exponent', 'epsilon_anneal_steps',
      'prefetch',
    )  # fmt: skip
    config_checks.check_positive(
      self, 'learning_rate', 'adam_epsilon', 'max_gradient_norm',
      'rescale_epsilon',
    )  # fmt: skip
    config_checks.check_fraction(
      self, 'discount', 'max_priority_share', 'evaluation_epsilon'
    )
    config_checks.check(
      self, 'epsilon_base', 0 < self.epsilon_base <= 1, 'in (0, 1]'
    )
    config_checks.check(
      self,
      'n_step',
      self.n_step <= self.unroll_length,
      f'at most unroll_length = {self.unroll_length}',
    )
    config_checks.check(
      self,
      'sequence_period',
      1 <= self.period <= self.unroll_length,
      f'in [1, unroll_length] = [1, {self.unroll_length}]',
    )

  @property
  def period(self) -> int:
    """Steps between the starts of sequences."""
    if self.sequence_period is not None:
      return self.sequence_period
    return max(1, self.unroll_length // 2)

  @property
  def sequence_length(self) -> int:
    """Observations of a sequence."""
    return self.burn_in_length + self.unroll_length + 1

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make."""
    return 1


PRESETS = {
  # The paper, section 2.3 and appendix. Each step is in two sequences, so that
  # it is learned from 1.5 times, as in SEED RL (arXiv:1910.06591).
  'atari': {
    'hidden_sizes': (512,),
    'core_size': 512,
    'burn_in_length': 40,
    'unroll_length': 80,
    'batch_size': 64,
    'learning_rate': 1e-4,
    'target_update_period': 2_500,
    'epsilon_anneal_steps': 0,
    'max_replay_size': 100_000,
    'min_replay_size': 5_000,
    'samples_per_insert': 0.75,
    'jit_compile': False,
  },
}
