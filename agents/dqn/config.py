"""Settings of DQN."""

import dataclasses

from repertory.agents import config_checks, experience_replay
from repertory.components import networks


@dataclasses.dataclass(frozen=True)
class DQNConfig:
  """Settings of DQN, each with where its default comes from.

  The defaults suit small environments with vector observations.
  """

  # Layers of the network before its head.
  hidden_sizes: tuple[int, ...] = (128, 128)
  # Convolutions for image leaves: 'nature', 'residual', 'data_efficient' or
  # 'minatar', see docs/environments.md.
  image_torso: str = 'nature'
  # Separate streams for state value and advantages (arXiv:1511.06581).
  dueling: bool = True
  # Select with the online, evaluate with the target network (arXiv:1509.06461).
  double: bool = True
  # Steps a transition spans: Rainbow, arXiv:1710.02298, table 1.
  n_step: int = 3
  # γ: Nature DQN, doi:10.1038/nature14236, extended data table 1.
  discount: float = 0.99
  # Rewards are clipped to ± this before they are summed up; None leaves them as
  # they are. Nature DQN has 1.
  max_abs_reward: float | None = None
  # Items a learner step samples.
  batch_size: int = 32
  # Of Adam; a common choice for small networks.
  learning_rate: float = 1e-3
  # Of Adam's denominator: Rainbow, table 1.
  adam_epsilon: float = 1.5e-4
  # Global norm at which gradients are clipped: dueling DQN, section 4.2.
  max_gradient_norm: float = 10.0
  # Where the Huber loss turns linear: Nature DQN, "error clipping".
  huber_threshold: float = 1.0
  # Learner steps between copies to the target network.
  target_update_period: int = 50
  # Sample by priority (arXiv:1511.05952) or uniformly.
  prioritized: bool = True
  # α of the priorities: Ape-X, arXiv:1803.00933, appendix C.
  priority_exponent: float = 0.6
  # β of the importance weights: Ape-X, appendix C.
  importance_exponent: float = 0.4
  # Smallest priority, so that no item is lost for ever.
  min_priority: float = 1e-3
  # Largest ε of the ladder over the environments: Ape-X, section 4.1.
  epsilon_base: float = 0.4
  # Steepness of the ladder: Ape-X, section 4.1.
  epsilon_exponent: float = 7.0
  # Steps, over all environments, in which ε falls from 1 to its place on the
  # ladder: Nature DQN, methods, scaled down to small environments.
  epsilon_anneal_steps: int = 3_000
  # ε of the evaluation policy.
  evaluation_epsilon: float = 0.0
  # Items the table holds.
  max_replay_size: int = 100_000
  # Items before learning starts.
  min_replay_size: int = 200
  # Mean draws per item: with batches of 32, a learner step every 2 steps;
  # Nature DQN takes one every 4, but small networks can afford more.
  samples_per_insert: float = 16.0
  # Lead of acting or learning, in samples; None for 10 % of the samples due at
  # min_replay_size, but at least twice what actors and learner need to take
  # turns.
  error_buffer: float | None = None
  # Batches prepared ahead of the learner.
  prefetch: int = 1
  # An actor's steps between fetches of variables.
  variable_update_period: int = 10
  # Compile the update with XLA (beside an accelerator also the policy): a third
  # faster for small networks on a CPU; convolutions are better off without.
  jit_compile: bool = True

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', networks.IMAGE_TORSOS)
    experience_replay.check_settings(self)
    config_checks.check_at_least(
      self, 1, 'n_step', 'target_update_period', 'variable_update_period'
    )
    config_checks.check_at_least(
      self, 0, 'epsilon_exponent', 'epsilon_anneal_steps', 'prefetch'
    )
    config_checks.check_positive(
      self, 'learning_rate', 'adam_epsilon', 'max_gradient_norm',
      'huber_threshold', 'max_abs_reward',
    )  # fmt: skip
    config_checks.check_fraction(self, 'discount', 'evaluation_epsilon')
    config_checks.check(
      self, 'epsilon_base', 0 < self.epsilon_base <= 1, 'in (0, 1]'
    )

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make: all that are open."""
    return self.n_step


PRESETS = {
  # Rainbow without distribution and noise: arXiv:1710.02298, table 1, where
  # four frames are a step and there is an update every four steps. ε is that of
  # its ablation without noisy networks.
  'atari': {
    'hidden_sizes': (512,),
    'max_abs_reward': 1.0,
    'learning_rate': 6.25e-5,
    'target_update_period': 2_000,
    'priority_exponent': 0.5,
    'epsilon_base': 0.01,
    'epsilon_exponent': 0.0,
    'epsilon_anneal_steps': 250_000,
    'evaluation_epsilon': 0.001,
    'max_replay_size': 1_000_000,
    'min_replay_size': 20_000,
    'samples_per_insert': 8.0,
    'jit_compile': False,
  },
}
