"""What all builders have in common that wrap one."""

import abc
import dataclasses
from typing import Any, ClassVar

from repertory.agents import builder
from repertory.agents.wrappers import rewarding
from repertory.agents.wrappers import steps as steps_lib
from repertory.agents.wrappers import wrap_config as wrap_config_lib
from repertory.components import experience as experience_lib
from repertory.components import programs, specs
from repertory.components import settings as settings_lib
from repertory.components.settings import SettingError

# What an agent's builder may override, and would not be called here.
_NOT_WRAPPED = (
  'make_adder',
  'make_dataset',
  'make_priority_updater',
  'make_learner',
)


class WrappingBuilder(builder.Builder):
  """Makes of an agent the same agent, which learns from other rewards.

  Network, policy and experience are those of the wrapped builder, and so is
  `config`. The update wraps the agent's update: it computes rewards from each
  batch, and learns from it what it needs for that.

  Attributes:
    name: What `--wrap` takes, and checkpoints tell.
    wrapped: The agent's builder.
    wrap_config: The settings of the wrapping.
  """

  name: ClassVar[str]

  def __init__(
    self, wrapped: builder.Builder, wrap_config: wrap_config_lib.WrapConfig
  ):
    """Keeps both.

    Raises:
      SettingError: If the builder is of a kind that cannot be wrapped.
    """
    super().__init__(wrapped.config)
    if isinstance(wrapped, WrappingBuilder):
      raise SettingError(
        wrap_config_lib.WRAP,
        "must be one, for it replaces another one's rewards; got "
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
        f'must be left out for {kind.__name__}, which has a '
        f"{' and a '.join(refused)} of its own that '{self.name}' would not "
        'call.',
      )
    if not wrapped.uses_rewards:
      raise SettingError(
        wrap_config_lib.WRAP,
        f'must be left out for {kind.__name__}, which learns from no rewards; '
        f"got '{self.name}'.",
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
  ) -> programs.Policy:
    return self.wrapped.make_policy(network, acting)

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    experience = self.wrapped.experience(spec, num_environments)
    steps_lib.check(experience.items, self.name)
    if experience.labeled is not None:
      raise SettingError(
        wrap_config_lib.WRAP,
        'must be left out where Bellman updaters compute targets: they know '
        f"nothing of the rewards of '{self.name}'. Let the learner compute "
        f'them, by leaving out {experience.labeled.called["max_size"]}.',
      )
    return experience

  def make_update(
    self, network: Any, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    return rewarding.RewardingUpdate(
      self.wrapped.make_update(network, spec),
      self.make_rewards(self._states_of(spec)),
      self.observes_previous_action_and_reward,
    )

  @abc.abstractmethod
  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    """Makes what computes the rewards.

    Args:
      spec: What the environment takes and gives, without what an agent
        observes of the action and the reward before.
    """

  def _states_of(self, spec: specs.EnvironmentSpec) -> specs.EnvironmentSpec:
    if not self.observes_previous_action_and_reward:
      return spec
    return spec._replace(observations=spec.observations[rewarding.OBSERVATION])


class ImitatingBuilder(WrappingBuilder):
  """One that compares demonstrations with what the agent lives through."""

  @property
  def needs_demonstrations(self) -> bool:
    return True

  @property
  def needs_own_steps(self) -> bool:
    return True
