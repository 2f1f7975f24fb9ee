"""Config of CRR."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class CRRConfig(
  replay_config.TransitionReplayConfig, agent_config.CategoricalConfig
):
  """Settings of CRR, with the sources of their defaults.

  "The paper" is arXiv:2006.15134, which samples uniformly.
  """

  schedulable: ClassVar[tuple[str, ...]] = ('advantage_temperature',)
  hidden_sizes: config_checks.NonEmptySizes = agent_config.default(
    (256, 256),
    ", with layer normalization of the critic's first layer as in Acme; for "
    'small environments. The paper has residual blocks of 1,024',
  )
  advantage_weights: Literal['exp', 'binary'] = settings.field(
    'exp',
    "Weights of cloned actions: 'exp' for exp(A / β), 'binary' for 1 if the "
    'advantage A is positive, else 0: the paper, section 3.',
  )
  advantage_baseline: Literal['mean', 'max'] = settings.field(
    'mean',
    "Baseline of the advantage: 'mean' or 'max' of the values of actions "
    'sampled from the policy: the paper, section 3.',
  )
  num_action_samples: config_checks.PositiveInt = settings.field(
    4, "m, number of actions sampled for the baseline: Acme's."
  )
  advantage_temperature: config_checks.PositiveFloat = settings.field(
    1.0, "Temperature β of 'exp' weights, in units of reward: Acme's."
  )
  max_weight: Annotated[float, config_checks.at_least(1)] = settings.field(
    20.0, "Maximum of 'exp' weights: Acme's."
  )
  n_step: int = agent_config.default(1, ': the paper, algorithm 1')
  discount: float = agent_config.default(0.99, ": Acme's")
  batch_size: int = agent_config.default(256, ": Acme's")
  learning_rate: float = agent_config.default(
    3e-4, "; for small networks larger than Acme's 1e-4"
  )
  max_gradient_norm: float | None = agent_config.default(40.0, ": Acme's")
  target_update_period: config_checks.PositiveInt = settings.field(
    100, "Learner steps between target network updates: Acme's."
  )


PRESETS = {
  # The paper, section 3: other weights and baselines.
  'binary': {'advantage_weights': 'binary'},
  'binary_max': {'advantage_weights': 'binary', 'advantage_baseline': 'max'},
}
