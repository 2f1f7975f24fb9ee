"""Base class of builders of reward models."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from repertory.agents.interface import builder
from repertory.agents.reward_models import reward_model_config as config_lib
from repertory.agents.reward_models import rewarding
from repertory.components import adders, interfaces, specs
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib


class RewardModelBuilder(builder.Builder):
  """Builder of an agent whose rewards are relabeled by a reward model.

  Network, policy, experience and `config` are those of the wrapped builder. The
  update relabels the rewards of each batch, trains the reward model, and calls
  the agent's update.

  Attributes:
    name: Value of `--reward_model`, saved in checkpoints.
    config_class: Class of the reward model's config, with defaults.
    rewards_class: Class of the reward model, called with environment spec and
      config.
    imitates: Whether it compares demonstrations with the agent's own steps.
    wrapped: The agent's builder.
    reward_model_config: Config of the reward model.
  """

  name: ClassVar[str]
  config_class: ClassVar[type[config_lib.RewardModelConfig]]
  rewards_class: ClassVar[Callable[..., rewarding.Rewards]]
  imitates: ClassVar[bool] = False

  def __init__(
    self,
    wrapped: builder.Builder,
    config: config_lib.RewardModelConfig | None = None,
  ):
    """Initializes the builder.

    Raises:
      SettingError: If the builder cannot be wrapped.
    """
    super().__init__(wrapped.config)
    if isinstance(wrapped, RewardModelBuilder):
      raise _refusal(
        "be a single one, because it replaces another one's rewards; got "
        f"'{self.name}' around '{wrapped.name}'."
      )
    kind = type(wrapped)
    for name in ('make_adder', 'make_learner'):
      if getattr(kind, name) is not getattr(builder.Builder, name):
        raise _refusal(
          f'be left out for {kind.__name__}, which overrides {name};'
          f" '{self.name}' would not call it."
        )
    if not wrapped.uses_rewards:
      raise _refusal(
        f'be left out for {kind.__name__}, which does not learn from rewards; '
        f"got '{self.name}'."
      )
    self.wrapped = wrapped
    self.reward_model_config: Any = config or self.config_class()
    settings = settings_lib.plain(dataclasses.asdict(self.reward_model_config))
    self.reward_model_identity = {
      config_lib.REWARD_MODEL: self.name,
      **{config_lib.PREFIX + name: value for name, value in settings.items()},
    }
    self.needs_demonstrations = self.imitates or wrapped.needs_demonstrations
    self.needs_own_steps = self.imitates or wrapped.needs_own_steps
    self.needs_whole_batches = wrapped.needs_whole_batches
    self.rates_combinations = wrapped.rates_combinations

  @property
  def observes_previous_action_and_reward(self) -> bool:
    return self.wrapped.observes_previous_action_and_reward

  @property
  def normalizes_observations(self) -> bool:
    return False  # The wrapped builder does: models get raw observations.

  def make_network(self, spec: specs.EnvironmentSpec) -> Any:
    return self.wrapped.make_network(spec)

  def make_policy(self, network, acting) -> interfaces.Policy:
    return self.wrapped.make_policy(network, acting)

  def experience(self, spec, num_environments) -> experience_lib.Experience:
    experience = self.wrapped.experience(spec, num_environments)
    items = experience.items
    if isinstance(items, adders.Transitions) and items.n_step > 1:
      raise SettingError(
        'n_step',
        f"must be 1 with '{self.name}', which relabels single steps: n-step "
        f'transitions lack the steps between. Got {items.n_step}.',
      )
    if not isinstance(items, adders.Transitions | adders.Sequences):
      raise _refusal(
        f"be left out: '{self.name}' relabels transitions and sequences, but "
        f'this agent learns from {type(items).__name__}.'
      )
    if experience.with_targets is not None:
      raise _refusal(
        'be left out if Bellman updaters compute targets, because they do not '
        f"use the rewards of '{self.name}'. Let the learner compute targets: "
        f'leave out {experience.with_targets.called["max_size"]}.'
      )
    return experience

  def make_update(self, network, spec) -> interfaces.Update:
    update = self.wrapped.make_update(network, spec)
    observes_previous = self.observes_previous_action_and_reward
    if observes_previous:
      observations = spec.observations[rewarding.OBSERVATION]
      spec = spec._replace(observations=observations)
    return rewarding.RewardingUpdate(
      update, self.make_rewards(spec), observes_previous
    )

  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    """Creates the reward model.

    Observations of the spec lack previous action and reward.
    """
    return self.rewards_class(spec, self.reward_model_config)


def _refusal(problem: str) -> SettingError:
  return SettingError(config_lib.REWARD_MODEL, f'must {problem}')
