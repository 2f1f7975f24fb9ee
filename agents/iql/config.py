"""Config of IQL."""

import dataclasses
from typing import Annotated, ClassVar

from repertory.agents.interface import agent_config, config_checks
from repertory.agents.replay import replay_config
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class IQLConfig(replay_config.TransitionReplayConfig):
  """Settings of IQL, with the sources of their defaults.

  "The paper" is arXiv:2110.06169, which samples uniformly, "the authors" the
  code that they published with it.
  """

  schedulable: ClassVar[tuple[str, ...]] = (
    'advantage_scale',
    'expectile',
    'target_update_rate',
  )
  hidden_sizes: tuple[int, ...] = agent_config.default(
    (256, 256), ': the paper, appendix B'
  )
  num_critics: config_checks.PositiveInt = settings.field(
    2, 'Number of critics, whose minimum is used: the paper, appendix B.'
  )
  expectile: Annotated[
    float, config_checks.where(lambda x: 0 < x < 1, 'between 0 and 1')
  ] = settings.field(
    0.7,
    "τ, expectile of the value: ½ is the mean over the data set's actions, "
    'and 1 the maximum. The paper, appendix B, for locomotion.',
  )
  advantage_scale: config_checks.NonNegativeFloat = settings.field(
    3.0,
    'β, inverse temperature of the advantage weights; 0 for behavior cloning. '
    'The paper, appendix B, for locomotion.',
  )
  max_weight: Annotated[float, config_checks.at_least(1)] = settings.field(
    100.0, "Maximum of the advantage weights: the authors'."
  )
  discount: float = agent_config.default(0.99, ": the authors'")
  batch_size: int = agent_config.default(256, ': the paper, appendix B')
  learning_rate: float = agent_config.default(3e-4, ': the paper, appendix B')
  policy_anneal_learner_steps: config_checks.PositiveInt | None = (
    settings.field(
      None,
      "Learner steps over which the policy's learning rate decays to 0 by a "
      "cosine schedule: all steps, in the authors' offline runs. None for a "
      'constant one, as in their online fine-tuning.',
    )
  )
  target_update_rate: config_checks.Rate = settings.field(
    0.005,
    'τ, rate of the moving average of the target critics, per learner step: '
    'the paper, appendix B.',
  )


PRESETS = {
  # The paper, appendix B, for data sets that require stitching.
  'antmaze': {'expectile': 0.9, 'advantage_scale': 10.0},
  # The paper, appendix B, without its dropout.
  'adroit': {'advantage_scale': 0.5},
}
