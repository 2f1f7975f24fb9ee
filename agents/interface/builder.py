"""Interface of agent builders."""

import abc
import copy
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import sonnet as snt
import tensorflow as tf

from repertory.agents.interface import agent_config, normalizing
from repertory.components import (
  adders,
  interfaces,
  learners,
  loggers,
  networks,
  replay,
  specs,
)
from repertory.components.actions import action_masks
from repertory.components.config import schedules
from repertory.components.runtime import nests
from repertory.components.transports import experience as experience_lib


@dataclasses.dataclass(frozen=True)
class Acting:
  """Conditions under which a policy acts.

  Attributes:
    spec: Environment spec.
    num_environments: Number of environments of all actors; ids are below it.
    seed: Random seed.
    steps_done: Steps that each environment already made, in earlier runs.
    evaluation: Whether to act greedily.
  """

  spec: specs.EnvironmentSpec
  num_environments: int
  seed: int
  steps_done: int = 0
  evaluation: bool = False

  def __post_init__(self):
    object.__setattr__(self, 'spec', nests.plain(self.spec))


# Factory methods of networks, and all of them, see `_checked`.
_NETWORKS = ('make_network', 'make_critic', 'make_discrete_critics')
_FACTORIES = (
  *_NETWORKS, 'make_policy', 'make_update', 'make_bellman_updater',
  'experience',
)  # fmt: skip


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
  """Wraps a factory to copy specs, which it may keep, and to reject None.

  Networks also mask their outputs, if the spec has action masks. Updates find
  variables in place of the config's schedules, which they follow.
  """

  @functools.wraps(method)
  def call(self, *args, **kwargs):
    copies = {name: nests.plain(value) for name, value in kwargs.items()}
    builder, values = self, {}
    if method.__name__ == 'make_update':
      builder, values = _with_variables(self)
    part = method(builder, *map(nests.plain, args), **copies)
    if part is None:
      raise ValueError(
        f'{type(self).__name__}.{method.__name__} must return what it creates, '
        'got None. Add a return statement.'
      )
    if method.__name__ in _NETWORKS:
      spec = args[0] if args else kwargs['spec']
      masks = action_masks.find(spec, combined=self.rates_combinations)
      return part if masks is None else networks.mask_actions(part, masks)
    # An update around that of another builder, whose schedules these are.
    if values and not any(
      isinstance(one, learners.ScheduledUpdate) for one in part.submodules
    ):
      return learners.ScheduledUpdate(
        part, schedules.of_config(self.config), values
      )
    return part

  return call


def _with_variables(
  builder: 'Builder',
) -> tuple['Builder', dict[str, tf.Variable]]:
  """Returns the builder with variables for scheduled settings, and these."""
  found = schedules.of_config(builder.config)
  if not found:
    return builder, {}
  values = learners.make_values(found)
  builder = copy.copy(builder)
  builder.config = copy.copy(builder.config)
  vars(builder.config).update(values)
  return builder, values


class Builder(abc.ABC):
  """Interface of agent builders: factories of the parts of an agent.

  An agent has a policy, an update and an `Experience`, which describes how
  experience flows from acting to learning. A builder starts nothing and does
  not depend on the topology. Override a factory to replace a part.

  Factories get copies of specs, which modules may keep; see `nests.plain`. If
  the observations have action masks, the networks that they return are masked.
  With `normalize_observations`, `make_network` returns a
  `networks.NormalizedNetwork`; `make_update` gets the network inside, and makes
  networks without a normalizer, because its batches are normalized.

  Attributes:
    config: The agent's config, an `agent_config.AgentConfig`.
    uses_rewards: Whether the agent learns from rewards.
    rates_combinations: Whether outputs of networks are of combinations of
      discrete actions, see `action_masks.find`.
    takes_additional_loss: Whether the update adds `additional_loss`.
    additional_loss: Method that computes a loss to add to the agent's, such as
      for an auxiliary head, or None: see `additional_loss.AdditionalLoss`.
    needs_demonstrations: Whether every batch must contain demonstrations, or
      consist of them.
    needs_own_steps: Whether the agent cannot learn from demonstrations alone.
    needs_whole_batches: Whether batches cannot be divided among devices.
    return_bounds: Support of a distributional critic, `(vmin, vmax)`; None
      without limits. They bound returns of the environment's rewards,
      discounted by `config.discount`. Data sets with returns out of bounds are
      rejected, unless returns are scaled by `normalize_rewards`.
    reward_model_identity: Name and settings of the reward model, as entries of
      run identities.
  """

  uses_rewards: ClassVar[bool] = True
  takes_additional_loss: ClassVar[bool] = False
  additional_loss: Any = None
  rates_combinations: bool = True
  needs_demonstrations: bool = False
  needs_own_steps: bool = False
  needs_whole_batches: bool = False
  return_bounds: tuple[float, float] | None = None
  reward_model_identity: Mapping[str, Any] = types.MappingProxyType({})

  def __init__(self, config: agent_config.AgentConfig | None = None):
    """Initializes the builder.

    Args:
      config: The config; None for the defaults of the class that the builder
        declares, by `config: MyConfig` in its body.

    Raises:
      ValueError: If its update would ignore its `additional_loss`.
    """
    kind = type(self)
    is_ours = kind.make_update.__module__.startswith('repertory.agents.')
    if kind.additional_loss and is_ours and not kind.takes_additional_loss:
      raise ValueError(
        f'{kind.__name__} must not have additional_loss, got one: its update '
        'ignores it. DQN, IMPALA, PPO and SAC support it; for other agents, '
        'override make_update.'
      )
    if config is None:
      config = typing.get_type_hints(type(self))['config']()
    self.config: Any = config

  def __init_subclass__(cls, **kwargs: Any):
    super().__init_subclass__(**kwargs)
    for name in _FACTORIES:
      method = vars(cls).get(name)
      if inspect.isfunction(method):
        setattr(cls, name, normalizing.wrap(_checked(method)))

  @property
  def observes_previous_action_and_reward(self) -> bool:
    """Whether an observation has also the previous action and reward.

    Then it is a dictionary of 'observation', 'previous_action' and
    'previous_reward', in the spec and for policy and update. By default the
    setting `previous_action_and_reward`, if there is one.
    """
    return getattr(self.config, 'previous_action_and_reward', False)

  @property
  def normalizes_observations(self) -> bool:
    """Whether it adds a normalizer to network and update."""
    return self.config.normalize_observations

  @abc.abstractmethod
  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates the network and all its variables.

    Raises:
      ValueError: If the network does not support the observations or actions.
    """

  @abc.abstractmethod
  def make_policy(self, network: Any, acting: Acting) -> interfaces.Policy:
    """Creates the policy.

    Args:
      network: Network of `make_network`, whose variables will be updated.
      acting: Conditions under which the policy acts.
    """

  @abc.abstractmethod
  def make_update(
    self, network: Any, spec: specs.EnvironmentSpec
  ) -> interfaces.Update:
    """Creates the update of `network`."""

  def make_bellman_updater(
    self, spec: specs.EnvironmentSpec
  ) -> interfaces.BellmanUpdater:
    """Creates a Bellman updater, which computes targets with its own networks.

    Required if `experience` has `with_targets`. Then the update gets
    `types.SampleWithTargets` items, and exports the variables that the updater
    follows.
    """
    del spec
    raise NotImplementedError(
      f'{type(self).__name__} has no Bellman updater, so its experience must '
      'have no `with_targets`.'
    )

  @abc.abstractmethod
  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    """Describes items, tables, batches and priorities.

    Args:
      spec: Environment spec.
      num_environments: Number of environments of all actors.

    Raises:
      ValueError: If the settings are invalid for this number of environments.
    """

  def make_adder(
    self,
    experience: experience_lib.Experience,
    writer: replay.Writer,
    batch_size: int,
  ) -> adders.Adder:
    """Creates the adder that cuts steps of `batch_size` slots into items.

    Override it where a description of the items is not enough.
    """
    return experience.items.make_adder(writer, batch_size)

  def make_learner(
    self,
    update: interfaces.Update,
    dataset: replay.Batches,
    priority_updater: replay.Priorities | None,
    logger: loggers.Logger,
    divergence: learners.Divergence | None = None,
    jit_compile: bool = False,
  ) -> learners.GradientLearner:
    """Creates the learner.

    Args:
      jit_compile: Whether to compile the update with XLA: the setting, or the
        default for the length of the run.
    """
    return learners.GradientLearner(
      update,
      dataset,
      dataset.element_spec,
      priority_updater=priority_updater,
      logger=logger,
      jit_compile=jit_compile,
      divergence=divergence,
    )
