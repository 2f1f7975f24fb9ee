"""Runs of the libraries, each in its own terms."""

from collections.abc import Mapping
from typing import Any, NamedTuple

CARTPOLE, PENDULUM = 'CartPole-v1', 'Pendulum-v1'


class Run(NamedTuple):
  """A run of one library.

  Attributes:
    name: Name in the tables.
    library: Name of the library in `peer_processes`.
    settings: Settings of its script, besides the steps.
    steps: Steps of the short run, which includes the first updates, and of the
      long one.
  """

  name: str
  library: str
  settings: Mapping[str, Any]
  steps: tuple[int, int]


class Case(NamedTuple):
  """One task, in Repertory and in other libraries.

  Attributes:
    title: Description of the task.
    ours: One or more runs of Repertory.
    peers: Runs of other libraries.
  """

  title: str
  ours: tuple[Run, ...]
  peers: tuple[Run, ...]


def ours(
  name: str,
  agent: str,
  environment: str,
  settings: Mapping[str, Any],
  steps: tuple[int, int],
  *,
  environments: int = 1,
  one_by_one: bool = False,
  topology: str = 'single',
) -> Run:
  """Returns a run of Repertory."""
  arguments = {
    'agent': agent,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    'one_by_one': one_by_one,
    'topology': topology,
  }
  return Run(name, 'repertory', arguments, steps)


def in_both_ways(
  agent: str, settings: Mapping[str, Any], steps: tuple[int, int], size: int
) -> tuple[Run, Run]:
  """Returns runs of CartPole as a vectorized batch, and as a loop."""

  def run(name: str, one_by_one: bool) -> Run:
    environment = f'gym:{CARTPOLE}'
    return ours(
      name, agent, environment, settings, steps,
      environments=size, one_by_one=one_by_one,
    )  # fmt: skip

  return run('ours, arrays', False), run('ours, one by one', True)


def baselines(
  library: str,
  algorithm: str,
  environment: str,
  settings: Mapping[str, Any],
  steps: tuple[int, int],
  *,
  environments: int = 1,
  **more: Any,
) -> Run:
  """Returns a run of Stable-Baselines3 or of SBX."""
  name = {'stable_baselines3': 'Stable-Baselines3', 'sbx': 'SBX (JAX)'}[library]
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    **more,
  }
  return Run(f'{name} {algorithm}', library, arguments, steps)


def cleanrl(
  script: str, flags: Mapping[str, Any], steps: tuple[int, int]
) -> Run:
  """Returns a run of a script of CleanRL."""
  return Run(
    f'CleanRL {script}', 'cleanrl', {'script': script, 'flags': flags}, steps
  )


def dm_acme(
  algorithm: str,
  environment: str,
  sizes: tuple[int, ...],
  settings: Mapping[str, Any],
  steps: tuple[int, int],
) -> Run:
  """Returns a run of dm-acme, with one environment in a process."""
  arguments = {
    'algorithm': algorithm,
    'environment': environment,
    'hidden_sizes': sizes,
    'settings': settings,
  }
  return Run(f'dm-acme {algorithm}', 'dm_acme', arguments, steps)
