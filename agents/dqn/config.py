"""Settings of DQN."""

import dataclasses

from repertory.components import networks

# Of the rate limiter, in samples due at `min_replay_size`.
_ERROR_BUFFER_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class DQNConfig:
  """Settings of DQN, each with where its default comes from.

  The defaults suit small environments with vector observations.
  """

  # Layers of the network before its head.
  hidden_sizes: tuple[int, ...] = (128, 128)
  # Convolutions for image leaves, 'nature' (doi:10.1038/nature14236) or
  # 'residual' (arXiv:1802.01561, figure 3).
  image_torso: str = 'nature'
  # Separate streams for state value and advantages (arXiv:1511.06581).
  dueling: bool = True
  # Select with the online, evaluate with the target network (arXiv:1509.06461).
  double: bool = True
  # Steps a transition spans: Rainbow, arXiv:1710.02298, table 1.
  n_step: int = 3
  # γ: Nature DQN, doi:10.1038/nature14236, extended data table 1.
  discount: float = 0.99
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
  # Compile policy and update with XLA: a third faster for small networks on a
  # CPU; convolutions are better off without.
  jit_compile: bool = True

  def __post_init__(self):
    for name in (
      'n_step',
      'batch_size',
      'target_update_period',
      'max_replay_size',
      'min_replay_size',
      'variable_update_period',
    ):
      self._check(name, getattr(self, name) >= 1, 'at least 1')
    for name in (
      'learning_rate',
      'adam_epsilon',
      'max_gradient_norm',
      'huber_threshold',
      'min_priority',
      'samples_per_insert',
    ):
      self._check(name, getattr(self, name) > 0, 'positive')
    for name in ('discount', 'importance_exponent', 'evaluation_epsilon'):
      self._check(name, 0 <= getattr(self, name) <= 1, 'in [0, 1]')
    for name in (
      'priority_exponent',
      'epsilon_exponent',
      'epsilon_anneal_steps',
      'prefetch',
    ):
      self._check(name, getattr(self, name) >= 0, 'at least 0')
    self._check('epsilon_base', 0 < self.epsilon_base <= 1, 'in (0, 1]')
    self._check(
      'hidden_sizes',
      all(size >= 1 for size in self.hidden_sizes),
      'positive numbers',
    )
    torsos = networks.IMAGE_TORSOS
    self._check(
      'image_torso', self.image_torso in torsos, f'one of {list(torsos)}'
    )

  def _check(self, name: str, holds: bool, expected: str) -> None:
    if not holds:
      raise ValueError(f'{name} must be {expected}, got {getattr(self, name)}.')

  def error_buffer_for(self, num_environments: int) -> float:
    """Returns the lead that either side may take, in samples.

    Args:
      num_environments: Over all actors.
    """
    if self.error_buffer is not None:
      return self.error_buffer
    items = num_environments * self.max_items_per_step
    turn = self.batch_size + self.samples_per_insert * items
    share = _ERROR_BUFFER_SHARE * self.samples_per_insert * self.min_replay_size
    return max(share, 2 * turn)

  @property
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make: all that are open."""
    return self.n_step + 1
