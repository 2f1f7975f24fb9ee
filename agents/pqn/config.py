"""Config of PQN."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks, config_fields
from repertory.agents.unrolls import unroll_config
from repertory.components.config import choices, settings


@dataclasses.dataclass(frozen=True)
class PQNConfig(unroll_config.UnrollConfig):
  """Settings of PQN, with the sources of their defaults.

  "The paper" is arXiv:2407.04811, "the authors" the settings that they
  published with it. The defaults suit small environments with vector
  observations.
  """

  xla_pays_after: ClassVar[int] = 200
  # Its authors have 32 for CartPole and 128 for games.
  default_environments_per_actor: ClassVar[int] = 16

  hidden_sizes: tuple[int, ...] = settings.field(
    (128, 128),
    'Hidden layer sizes of the network, with layer normalization, before the '
    'recurrent core and head; the authors have (256, 256) for CartPole.',
  )
  image_torso: str = config_fields.image_torso()
  unroll_length: int = settings.field(
    32, 'T, steps per unroll: the authors, for games.'
  )
  batch_size: int | None = settings.field(
    None, 'Unrolls per learner step; None for one of each environment.'
  )
  num_epochs: int = settings.field(
    4,
    'Epochs over each batch: the authors, for CartPole; they have 2 for games.',
  )
  num_minibatches: int = settings.field(
    4,
    'Minibatches (gradient steps) per epoch; the authors have 16 and 32, with '
    'more steps each.',
  )
  reward_scale: float = settings.field(
    1.0,
    'Rewards are multiplied by this before clipping: the authors have 0.1 for '
    'CartPole, whose returns are large.',
  )
  discount: float = settings.field(0.99, 'Discount factor γ: the authors.')
  lambda_: float = settings.field(
    0.95,
    'λ of the Q(λ) returns: the authors, for CartPole; they have 0.65 for '
    'games.',
  )
  learning_rate: float = settings.field(
    5e-4, 'Learning rate of Adam: the authors, for MinAtar.'
  )
  max_gradient_norm: float = settings.field(
    10.0, 'Maximum global norm of gradients: the authors.'
  )
  anneal_learner_steps: int | None = settings.field(
    None,
    'Learner steps over which the learning rate decays linearly to 0; None '
    'for a constant one. Its authors decay it over the run on MinAtar.',
  )
  epsilon_base: float = settings.field(
    0.05, 'Final ε: the authors, for MinAtar.'
  )
  epsilon_exponent: float = settings.field(
    0.0,
    'Steepness of a ladder of ε over environments, as in Ape-X '
    '(arXiv:1803.00933, section 4.1); 0 for the same ε everywhere.',
  )
  epsilon_anneal_steps: int = settings.field(
    10_000,
    'Steps, over all environments, over which ε decays linearly from 1; its '
    'authors decay it over a tenth of the run.',
  )
  evaluation_epsilon: float = settings.field(0.0, 'ε in evaluation.')

  def __post_init__(self):
    super().__post_init__()
    config_checks.check_sizes(self, 'hidden_sizes')
    config_checks.check_one_of(self, 'image_torso', choices.IMAGE_TORSOS)
    config_checks.check_at_least(
      self, 1, 'num_epochs', 'num_minibatches', 'anneal_learner_steps'
    )
    config_checks.check_at_least(
      self, 0, 'epsilon_exponent', 'epsilon_anneal_steps'
    )
    config_checks.check_positive(self, 'max_gradient_norm', 'reward_scale')
    config_checks.check_fraction(self, 'lambda_', 'evaluation_epsilon')
    config_checks.check(
      self, 'epsilon_base', 0 < self.epsilon_base <= 1, 'in (0, 1]'
    )

  def batch_size_for(self, num_environments: int) -> int:
    return self.divided_batch_size(num_environments, self.num_minibatches)


PRESETS = {
  # Its authors', for 10 million steps of 128 environments.
  'minatar': {
    'hidden_sizes': (128,),
    'image_torso': 'minatar',
    'num_epochs': 2,
    'num_minibatches': 32,
    'lambda_': 0.65,
    'anneal_learner_steps': 2_441,
    'epsilon_anneal_steps': 1_000_000,
  },
  # The same, for Atari.
  'atari': {
    'hidden_sizes': (512,),
    'num_epochs': 2,
    'num_minibatches': 32,
    'lambda_': 0.65,
    'learning_rate': 2.5e-4,
    'epsilon_base': 0.001,
    'epsilon_anneal_steps': 1_000_000,
    'max_abs_reward': 1.0,
    'jit_compile': False,
  },
}
