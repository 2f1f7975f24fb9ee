"""Presets by environment: settings of agents that suit certain tasks.

The table of an agent is `TUNED` of its module `tuned`. It is imported when it
is looked up, so runs without it do not depend on it.
"""

import dataclasses
import fnmatch
import importlib
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedPreset:
  """Settings of an agent for some environments.

  Attributes:
    environments: Environments that `repertory zoo` trains on, and the published
      return of `reference` for each; None if it has none.
    patterns: Patterns (`fnmatch`) of other environments that it suits.
    steps: Number of environment steps that solves these, or of the source.
    source: Source of the settings.
    reference: Source of the returns; '' without any.
    base: Name of the preset that it extends; None for the defaults.
    settings: Settings of the agent that differ from that preset.
    environments_per_actor: Number of environments that an actor steps; None
      for the agent's default.
    evaluation_episodes: Episodes of each evaluation of `repertory zoo`.
  """

  environments: Mapping[str, float | None]
  patterns: tuple[str, ...] = ()
  steps: int
  source: str
  reference: str = ''
  base: str | None = None
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  environments_per_actor: int | None = None
  evaluation_episodes: int = 20

  def match(self, environment: str) -> str | None:
    """Returns the first environment or pattern that an environment matches.

    Options do not matter, unless one with these options is listed; None without
    a match.
    """
    if environment in self.environments:
      return environment
    name = environment.partition('?')[0]
    found = (
      one
      for one in (*self.environments, *self.patterns)
      if fnmatch.fnmatchcase(name, one.partition('?')[0])
    )
    return next(found, None)


def table(agent: str) -> tuple[TunedPreset, ...]:
  """Returns the presets by environment of an agent; none for a user's own."""
  name = f'repertory.agents.{agent}.tuned'
  try:
    return importlib.import_module(name).TUNED
  except ModuleNotFoundError as error:
    if not f'{name}.'.startswith(f'{error.name}.'):
      raise
    return ()


def find(agent: str, environment: str) -> TunedPreset | None:
  """Returns an agent's first preset that suits an environment, if any."""
  found = (one for one in table(agent) if one.match(environment))
  return next(found, None)
