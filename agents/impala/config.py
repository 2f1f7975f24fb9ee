"""Settings of IMPALA."""

import dataclasses

from repertory.agents import config_checks
from repertory.components import networks


@dataclasses.dataclass(frozen=True)
class IMPALAConfig:
  """Settings of IMPALA, each with where its default comes from.

  The defaults suit small environments with vector observations; "the paper" is
  arXiv:1802.01561.
  """

  # Layers of the network before its core.
  hidden_sizes: tuple[int, ...] = (128, 128)
  # Convolutions for image leaves: 'nature', 'residual', 'data_efficient' or
  # 'minatar', see docs/environments.md.
  image_torso: str = 'nature'
  # Memory: 'none', 'lstm' (the paper, figure 3) or 'gru'.
  core: str = 'none'
  # Size of the memory's output.
  core_size: int = 128
  # Whether the network sees the action and the reward before each observation,
  # as the paper's recurrent network does.
  previous_action_and_reward: bool = False
  # T, steps of an unroll; the paper has 20 for Atari, which gives fewer and
  # larger batches.
  unroll_length: int = 10
  # Whether unrolls go on over the end of episodes; else the last one of an
  # episode is padded.
  across_episodes: bool = True
  # Unrolls a learner step takes; the paper has 32.
  batch_size: int = 8
  # γ: the paper, appendix D.
  discount: float = 0.99
  # Of Adam; for small networks larger than the paper's.
  learning_rate: float = 1e-3
  # Learner steps in which the learning rate falls to 0, linearly; None for
  # never. The paper, appendix D, lets it fall over a run on Atari.
  anneal_learner_steps: int | None = None
  # Of Adam's denominator.
  adam_epsilon: float = 1e-5
  # Global norm at which gradients are clipped: the paper's, appendix D, of a
  # sum over steps. Of a mean, as here, it only catches extremes.
  max_gradient_norm: float = 40.0
  # Weight of the value loss: the paper, appendix D.
  baseline_cost: float = 0.5
  # Weight of the entropy: the paper, appendix D, for Atari.
  entropy_cost: float = 0.01
  # Rewards are clipped to ± this before learning; None leaves them as they are.
  # The paper has 1 for Atari.
  max_abs_reward: float | None = None
  # ρ̄, the bound of the ratios in V-trace's errors: the paper, section 4.1.
  max_rho: float = 1.0
  # ρ̄_pg, the bound of the ratios in the policy's gradient: the paper, 4.2.
  max_pg_rho: float = 1.0
  # c̄, the bound of the ratios that carry errors back: the paper, section 4.1.
  max_c: float = 1.0
  # λ of V-trace: the paper, remark 2.
  lambda_: float = 1.0
  # Unrolls the queue holds; None for two batches and one of each environment.
  max_queue_size: int | None = None
  # Batches prepared ahead of the learner; each one makes the data older.
  prefetch: int = 0
  # An actor's steps between fetches of variables.
  variable_update_period: int = 10
  # Compile update and recurrent policy (beside an accelerator any policy) with
  # XLA: faster for small networks on a CPU; convolutions are better off
  # without.
  jit_compile: bool = True

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', networks.IMAGE_TORSOS)
    config_checks.check_one_of(self, 'core', networks.CORES)
    config_checks.check_at_least(
      self, 1, 'core_size', 'unroll_length', 'batch_size',
      'variable_update_period', 'anneal_learner_steps', 'max_queue_size',
    )  # fmt: skip
    config_checks.check_at_least(
      self, 0, 'baseline_cost', 'entropy_cost', 'max_rho', 'max_pg_rho',
      'max_c', 'prefetch',
    )  # fmt: skip
    config_checks.check_positive(
      self, 'learning_rate', 'adam_epsilon', 'max_gradient_norm',
      'max_abs_reward',
    )  # fmt: skip
    config_checks.check_fraction(self, 'discount', 'lambda_')
    config_checks.check(
      self,
      'max_rho',
      self.max_rho >= self.max_c,
      f'at least max_c = {self.max_c}',
    )

  def queue_size_for(self, num_environments: int) -> int:
    """Returns how many unrolls the queue holds.

    Args:
      num_environments: Over all actors.
    """
    if self.max_queue_size is not None:
      return self.max_queue_size
    return 2 * self.batch_size + num_environments

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make."""
    return 1


PRESETS = {
  # The paper, appendix D, with the learning rate and entropy of Acme's example,
  # for Adam and not RMSProp.
  'atari': {
    'hidden_sizes': (512,),
    'unroll_length': 20,
    'batch_size': 32,
    'max_abs_reward': 1.0,
    'learning_rate': 2e-4,
    'entropy_cost': 5e-3,
    'jit_compile': False,
  },
  # Ours, for 1,500,000 steps: see docs/results.md.
  'minatar': {
    'hidden_sizes': (128,),
    'image_torso': 'residual',
    'unroll_length': 20,
    'learning_rate': 4e-4,
    'anneal_learner_steps': 9_375,
    'max_gradient_norm': 1.0,
    'jit_compile': False,
  },
}
