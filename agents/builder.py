"""The seam between agents and everything that runs them."""

import abc
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import sonnet as snt

from repertory.agents import agent_config
from repertory.components import (
  datasets,
  learners,
  loggers,
  nests,
  programs,
  replay,
  roads,
  specs,
)
from repertory.components import experience as experience_lib


@dataclasses.dataclass(frozen=True)
class Acting:
  """What a policy is to act for.

  Attributes:
    spec: What the environment takes and gives.
    num_environments: Over all actors; environment ids are below it.
    seed: Seeds all random numbers.
    steps_done: Steps that each environment has behind it, in earlier runs.
    evaluation: Whether to act greedily.
  """

  spec: specs.EnvironmentSpec
  num_environments: int
  seed: int
  steps_done: int = 0
  evaluation: bool = False

  def __post_init__(self):
    object.__setattr__(self, 'spec', nests.plain(self.spec))


# Methods that make a part. The part may keep the spec, or nests of it.
_MAKING = (
  'make_network',
  'make_policy',
  'make_update',
  'make_bellman_updater',
  'experience',
)


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
  """Gives a method copies of environment specs, and refuses None as a part."""

  def copied(argument: Any) -> Any:
    is_spec = isinstance(argument, specs.EnvironmentSpec)
    return nests.plain(argument) if is_spec else argument

  @functools.wraps(method)
  def call(self, *args, **kwargs):
    part = method(
      self,
      *map(copied, args),
      **{name: copied(value) for name, value in kwargs.items()},
    )
    if part is None:
      raise ValueError(
        f'{type(self).__name__}.{method.__name__} must return what it makes, '
        'got None. Add a return statement.'
      )
    return part

  return call


class Builder(roads.Parts, abc.ABC):
  """Returns the parts of an agent; starts nothing.

  An agent is two TensorFlow programs, the policy and the update, and an
  experience, which says how what was lived travels from the one to the other.
  How the parts are wired, and in which process each one runs, is not its
  business. A part is replaced by overriding the method that makes it; those
  that follow from the experience are made by the methods of `roads.Parts`.

  A module may keep the spec that a method gets: it is a copy, see
  `nests.plain`.

  Attributes:
    config: The agent's settings, an `agent_config.AgentConfig`.
    uses_rewards: Whether what it learns depends on them.
  """

  uses_rewards: ClassVar[bool] = True

  def __init__(self, config: agent_config.AgentConfig):
    self.config: Any = config

  def __init_subclass__(cls, **kwargs: Any):
    super().__init_subclass__(**kwargs)
    for name in _MAKING:
      method = vars(cls).get(name)
      if inspect.isfunction(method):
        setattr(cls, name, _checked(method))

  @property
  def wrapping(self) -> Mapping[str, Any]:
    """How it wraps another agent, as plain values by name; see `wrappers`."""
    return {}

  @property
  def needs_demonstrations(self) -> bool:
    """Whether every batch must have rows of data, or nothing else."""
    return False

  @property
  def needs_own_steps(self) -> bool:
    """Whether batches of data alone would teach it nothing."""
    return False

  @property
  def needs_whole_batches(self) -> bool:
    """Whether its rows cannot be divided among devices."""
    return False

  @property
  def observes_previous_action_and_reward(self) -> bool:
    """Whether observations are to tell what led to them.

    If so, an observation is a dictionary of 'observation', 'previous_action'
    and 'previous_reward', in the spec and for policy and update.
    """
    return False

  @property
  def return_bounds(self) -> tuple[float, float] | None:
    """The least and the largest return that its critic can tell, if any.

    These are the settings `vmin` and `vmax`, of the environment's rewards and
    discounted by `config.discount`. Data with others are refused.
    """
    return None

  @abc.abstractmethod
  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Makes a network with all its variables.

    Raises:
      ValueError: If the network cannot take the observations or actions.
    """

  @abc.abstractmethod
  def make_policy(self, network: Any, acting: Acting) -> programs.Policy:
    """Makes the policy.

    Args:
      network: From `make_network`; its variables will change.
      acting: What the policy is to act for.
    """

  @abc.abstractmethod
  def make_update(
    self, network: Any, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    """Makes the update of `network`."""

  def make_bellman_updater(
    self, spec: specs.EnvironmentSpec
  ) -> programs.BellmanUpdater:
    """Makes what computes targets, with networks of its own.

    It is asked for if `experience` has `labeled`. Then the update gets
    `types.Labeled` items, and exports what the updater follows.
    """
    del spec
    raise NotImplementedError(
      f'{type(self).__name__} has no Bellman updater, so its experience must '
      'have no `labeled`.'
    )

  @abc.abstractmethod
  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    """Describes items, tables, batches and priorities.

    Args:
      num_environments: Over all actors.

    Raises:
      ValueError: If the settings do not fit that many.
    """

  def make_learner(
    self,
    update: programs.Update,
    dataset: datasets.Batches,
    priority_updater: replay.Priorities | None,
    logger: loggers.Logger,
    divergence: learners.Divergence | None = None,
    jit_compile: bool = False,
  ) -> learners.GradientLearner:
    """Makes the learner; one that needs its own explains why.

    Args:
      jit_compile: Whether XLA compiles the update: what the setting says, or
        follows from the length of the run.
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
