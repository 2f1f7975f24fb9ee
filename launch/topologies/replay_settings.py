"""Topologies with a replay table: its location, and Bellman updaters."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from repertory import components
from repertory.agents.interface import config_checks
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.topologies import parts, topology

if TYPE_CHECKING:
  from repertory.launch.experiments import session as session_lib

# Names of kinds of transport by value of the setting.
_KINDS = {'process': 'IN_PROCESS', 'reverb': 'REVERB', 'server': 'SERVED'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayTopology(topology.Topology):
  """Topology with a choice of replay.

  Attributes:
    replay_choices: Supported values of `replay`, the best first.
  """

  replay_choices: ClassVar[Sequence[str]] = ('reverb', 'server')

  replay: str = settings.field(
    'auto',
    'where the replay table is: process (the memory of this process, only in '
    'single), reverb (a Reverb server), server (a server of this package); '
    'auto takes the first of these that the topology supports and that is '
    'installed. A resumed run keeps what it had, if possible.',
  )

  def check(self, experiment):
    super().check(experiment)
    known = ('auto', *self.replay_choices)
    if self.replay not in known:
      raise SettingError(
        'replay',
        f"must be {' or '.join(known)} with topology '{self.name}', got "
        f'{self.replay!r}.',
      )
    if self.replay == 'reverb' and not _has_reverb():
      raise SettingError(
        'replay',
        "must be another one than 'reverb', since Reverb is not installed. Use "
        "'server'.",
      )

  def transports(self, experiment):
    chosen = [self.replay]
    if self.replay == 'auto':
      chosen = [
        name
        for name in self.replay_choices
        if name != 'reverb' or _has_reverb()
      ]
    return [getattr(components.transports, _KINDS[name]) for name in chosen]


def _has_reverb() -> bool:
  return components.runtime.versions.has_reverb()


@dataclasses.dataclass(frozen=True, kw_only=True)
class BellmanUpdaterTopology(ReplayTopology):
  """Topology with Bellman updaters: nodes that compute targets (QT-Opt)."""

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
        [kinds.REPLAY.name, kinds.LEARNER.name],
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
