"""Config of PQN."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.unrolls import unroll_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class PQNConfig(unroll_config.MinibatchConfig, agent_config.EpsilonConfig):
  """Settings of PQN, with the sources of their defaults.

  "The paper" is arXiv:2407.04811, "the authors" the settings that they
  published with it. The defaults suit small environments with vector
  observations.
  """

  xla_pays_after: ClassVar[int] = 200
  # Its authors have 32 for CartPole and 128 for games.
  default_environments_per_actor: ClassVar[int] = 16
  hidden_sizes: tuple[int, ...] = agent_config.default(
    (128, 128),
    ', with layer normalization, before the recurrent core and head; the '
    'authors have (256, 256) for CartPole',
  )
  unroll_length: int = agent_config.default(32, ': the authors, for games')
  num_epochs: int = agent_config.default(
    4, ': the authors, for CartPole; they have 2 for games'
  )
  num_minibatches: int = agent_config.default(
    4, '; the authors have 16 and 32, with more steps each'
  )
  reward_scale: config_checks.PositiveFloat = settings.field(
    1.0,
    'Rewards are multiplied by this before clipping: the authors have 0.1 for '
    'CartPole, whose returns are large.',
  )
  discount: float = agent_config.default(0.99, ': the authors')
  lambda_: float = agent_config.default(
    0.95, ': the authors, for CartPole; they have 0.65 for games'
  )
  learning_rate: float = agent_config.default(
    5e-4, ': the authors, for MinAtar'
  )
  max_gradient_norm: float | None = agent_config.default(10.0, ': the authors')
  anneal_learner_steps: int | None = agent_config.default(
    None, '. Its authors decay it over the run on MinAtar'
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
