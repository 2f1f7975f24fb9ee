"""Setting of topologies that can keep replay in different places."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from repertory import components
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.launch.topologies import topology

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
