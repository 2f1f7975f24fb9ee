"""Topologies with Bellman updaters: nodes that compute targets (QT-Opt)."""

import dataclasses
from typing import TYPE_CHECKING

from repertory.agents.interface import config_checks
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.topologies import parts, replay_settings

if TYPE_CHECKING:
  from repertory.launch.experiments import session as session_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class BellmanUpdaterTopology(replay_settings.ReplayTopology):
  """Topology with a configurable number of Bellman updaters."""

  has_bellman_updaters = True

  num_bellman_updaters: int | None = settings.field(
    None,
    'nodes that compute targets, for agents whose learner does not; default: '
    'one for such an agent.',
  )

  def check(self, experiment):
    super().check(experiment)
    name, count = 'num_bellman_updaters', self.num_bellman_updaters
    is_valid = count is None or count >= 1
    config_checks.check(self, name, is_valid, 'at least 1 or left out')

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    if experience.with_targets is None and self.num_bellman_updaters:
      raise SettingError(
        'num_bellman_updaters',
        f'must be left out for agent {experiment.agent!r} with these settings: '
        "its learner computes targets itself. That of 'qtopt' does not if "
        'train_buffer_size is set.',
      )

  def add_bellman_updaters(
    self, planned: launcher_lib.NodeGraph, session: 'session_lib.Session'
  ) -> None:
    """Adds Bellman updaters to a node graph, if the agent needs them."""
    if session.experience.with_targets is None:
      return
    for index in range(self.num_bellman_updaters or 1):
      planned.plan(
        kinds.BELLMAN_UPDATER.numbered(index),
        _make_bellman_updater,
        [kinds.REPLAY.name, kinds.LEARNER.name, kinds.COORDINATOR.name],
        session=session,
        index=index,
      )


def _make_bellman_updater(context, session, index):
  """Makes a Bellman updater, with fetched copies of the learner's variables."""
  with context.initializing():
    updater = session.experiment.builder.make_bellman_updater(session.spec)
  names, targets = zip(*updater.variable_client.items())
  variable_client = parts.make_variable_client(
    context,
    session,
    [variable for group in targets for variable in group],
    names=names,
  )
  return nodes.bellman_updater.BellmanUpdaterNode(
    context,
    session,
    updater,
    variable_client=variable_client,
    transport=parts.connect(context, session),
    index=index,
  )
