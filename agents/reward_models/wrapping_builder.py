"""Base classes of builders of reward models."""

import abc
import dataclasses
from typing import Any, ClassVar

from repertory.agents.interface import builder
from repertory.agents.reward_models import rewarding
from repertory.agents.reward_models import steps as steps_lib
from repertory.agents.reward_models import wrap_config as wrap_config_lib
from repertory.components import interfaces, specs
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib

# Methods of agent builders whose overrides would not be called here.
_NOT_WRAPPED = (
  'make_adder',
  'make_dataset',
  'make_priority_updater',
  'make_learner',
)


class WrappingBuilder(builder.Builder):
  """Builder of an agent whose rewards are relabeled by a reward model.

  Network, policy, experience and `config` are those of the wrapped builder. The
  update relabels the rewards of each batch, trains the reward model, and calls
  the agent's update.

  Attributes:
    name: Value of `--wrap`, saved in checkpoints.
    wrapped: The agent's builder.
    wrap_config: Config of the reward model.
  """

  name: ClassVar[str]

  def __init__(
    self, wrapped: builder.Builder, wrap_config: wrap_config_lib.WrapConfig
  ):
    """Initializes the builder.

    Raises:
      SettingError: If the builder cannot be wrapped.
    """
    super().__init__(wrapped.config)
    if isinstance(wrapped, WrappingBuilder):
      raise SettingError(
        wrap_config_lib.WRAP,
        "must be a single one, because it replaces another one's rewards; got "
        f"'{self.name}' around '{wrapped.name}'.",
      )
    kind = type(wrapped)
    refused = [
      name
      for name in _NOT_WRAPPED
      if getattr(kind, name) is not getattr(builder.Builder, name)
    ]
    if refused:
      raise SettingError(
        wrap_config_lib.WRAP,
        f'must be left out for {kind.__name__}, which overrides '
        f"{' and '.join(refused)}; '{self.name}' would not call it.",
      )
    if not wrapped.uses_rewards:
      raise SettingError(
        wrap_config_lib.WRAP,
        f'must be left out for {kind.__name__}, which does not learn from '
        f"rewards; got '{self.name}'.",
      )
    self.wrapped = wrapped
    self.wrap_config: Any = wrap_config

  @property
  def wrapping(self) -> dict[str, Any]:
    plain = settings_lib.plain(dataclasses.asdict(self.wrap_config))
    settings = {
      f'{wrap_config_lib.WRAP}.{name}': value for name, value in plain.items()
    }
    return {wrap_config_lib.WRAP: self.name, **settings}

  @property
  def needs_demonstrations(self) -> bool:
    return self.wrapped.needs_demonstrations

  @property
  def needs_own_steps(self) -> bool:
    return self.wrapped.needs_own_steps

  @property
  def needs_whole_batches(self) -> bool:
    return self.wrapped.needs_whole_batches

  @property
  def observes_previous_action_and_reward(self) -> bool:
    return self.wrapped.observes_previous_action_and_reward

  def make_network(self, spec: specs.EnvironmentSpec) -> Any:
    return self.wrapped.make_network(spec)

  def make_policy(
    self, network: Any, acting: builder.Acting
  ) -> interfaces.Policy:
    return self.wrapped.make_policy(network, acting)

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    experience = self.wrapped.experience(spec, num_environments)
    steps_lib.check(experience.items, self.name)
    if experience.with_targets is not None:
      raise SettingError(
        wrap_config_lib.WRAP,
        'must be left out if Bellman updaters compute targets, because they do '
        f"not use the rewards of '{self.name}'. Let the learner compute "
        'targets: leave out '
        f'{experience.with_targets.called["max_size"]}.',
      )
    return experience

  def make_update(
    self, network: Any, spec: specs.EnvironmentSpec
  ) -> interfaces.Update:
    return rewarding.RewardingUpdate(
      self.wrapped.make_update(network, spec),
      self.make_rewards(self._states_of(spec)),
      self.observes_previous_action_and_reward,
    )

  @abc.abstractmethod
  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    """Creates the reward model.

    Args:
      spec: Environment spec, without previous action and reward in
        observations.
    """

  def _states_of(self, spec: specs.EnvironmentSpec) -> specs.EnvironmentSpec:
    if not self.observes_previous_action_and_reward:
      return spec
    return spec._replace(observations=spec.observations[rewarding.OBSERVATION])


class ImitatingBuilder(WrappingBuilder):
  """Base class of imitation learning from demonstrations and own steps."""

  @property
  def needs_demonstrations(self) -> bool:
    return True

  @property
  def needs_own_steps(self) -> bool:
    return True
