"""The seam between agents and everything that runs them."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import sonnet as snt

from repertory.agents import agent_config
from repertory.components import (
  adders,
  datasets,
  learners,
  loggers,
  programs,
  replay,
  specs,
)
from repertory.components.adders import reverb_adder


class Builder(abc.ABC):
  """Returns the parts of an agent; starts nothing.

  An agent is two TensorFlow programs, the policy and the update, and four
  choices: tables with their rate limits, adder, dataset, priorities. How the
  parts are wired, and in which process each one runs, is not its business.
  A part is replaced by overriding the method that makes it.

  Attributes:
    config: The agent's settings, an `agent_config.AgentConfig`.
  """

  # Items of each environment that may be on their way to replay while it acts:
  # more hide the way's latency, fewer keep data fresh.
  max_pending_items_per_environment: int = 4

  # What the config calls 'max_size' and 'min_size' of the tables, for errors.
  setting_names: Mapping[str, str] = {}

  def __init__(self, config: agent_config.AgentConfig):
    self.config: Any = config

  @property
  def observes_previous_action_and_reward(self) -> bool:
    """Whether observations are to tell what led to them.

    If so, an observation is a dictionary of 'observation', 'previous_action'
    and 'previous_reward', in the spec and for policy and update.
    """
    return False

  def batch_size(self, num_environments: int) -> int:
    """Returns how many items a learner step takes.

    Args:
      num_environments: Over all actors.

    Raises:
      ValueError: If the settings do not fit that many.
    """
    del num_environments
    return self.config.batch_size

  def max_items(self, num_steps: int) -> int:
    """Returns the most items that so many environment steps can make."""
    return num_steps * self.config.max_items_per_step

  def bundle_size(self, num_slots: int, num_environments: int) -> int:
    """Returns how many items the table may hold as one; see `Table.bundled`.

    Args:
      num_slots: What the environments of every adder are a multiple of.
      num_environments: Over all actors.
    """
    del num_slots, num_environments
    return 1

  @abc.abstractmethod
  def make_network(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Makes a network with all its variables.

    Raises:
      ValueError: If the network cannot take the observations or actions.
    """

  @abc.abstractmethod
  def make_policy(
    self,
    network: Any,
    spec: specs.EnvironmentSpec,
    *,
    num_environments: int,
    seed: int,
    steps_done: int,
    evaluation: bool,
  ) -> programs.Policy:
    """Makes the policy.

    Args:
      network: From `make_network`; its variables will change.
      spec: Of the environment.
      num_environments: Over all actors; environment ids are below it.
      seed: Of the random numbers.
      steps_done: Steps that each environment has behind it, in earlier runs.
      evaluation: Whether to act greedily.
    """

  @abc.abstractmethod
  def make_update(
    self, network: Any, spec: specs.EnvironmentSpec
  ) -> programs.Update:
    """Makes the update of `network`."""

  @abc.abstractmethod
  def make_tables(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> Sequence[replay.Table]:
    """Describes the replay tables; the learner samples the first."""

  @abc.abstractmethod
  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> reverb_adder.ReverbAdder:
    """Makes the adder of an actor.

    Args:
      destination: Where its items go.
      batch_size: Slots of the actor's environment batch.
    """

  def make_dataset(
    self, connection: replay.Connection, table: replay.Table, batch_size: int
  ) -> datasets.ReplayDataset:
    """Makes the learner's batches, of so many items."""
    return datasets.ReplayDataset(
      connection, table, batch_size, prefetch=self.config.prefetch
    )

  def make_priority_updater(
    self, connection: replay.Connection, table: replay.Table
  ) -> replay.PriorityUpdater | None:
    """Makes what writes priorities back; None if items have none."""
    del connection, table
    return None

  def make_learner(
    self,
    update: programs.Update,
    dataset: datasets.ReplayDataset,
    priority_updater: replay.PriorityUpdater | None,
    logger: loggers.Logger,
    divergence: learners.Divergence | None = None,
  ) -> learners.GradientLearner:
    """Makes the learner; one that needs its own explains why."""
    return learners.GradientLearner(
      update,
      dataset,
      dataset.element_spec,
      priority_updater=priority_updater,
      logger=logger,
      jit_compile=self.config.jit_compile,
      divergence=divergence,
    )
