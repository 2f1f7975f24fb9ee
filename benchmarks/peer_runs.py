"""What libraries are told to do, each in its own words."""

from collections.abc import Mapping
from typing import Any, NamedTuple

CARTPOLE, PENDULUM = 'CartPole-v1', 'Pendulum-v1'


class Run(NamedTuple):
  """What one library is told to do.

  Attributes:
    name: What it is called in the tables.
    library: Whose, as `peer_processes` calls it.
    settings: What its script is told, besides the steps.
    steps: Those of the shorter run, in which the first updates are made, and
      those of the longer one.
    mark: The ratio to reach beside it, of steps per second of processor time,
      if it is a peer's.
  """

  name: str
  library: str
  settings: Mapping[str, Any]
  steps: tuple[int, int]
  mark: float = 1.0


class Case(NamedTuple):
  """The same work, by us and by others.

  Attributes:
    title: What it is.
    ours: One or more ways in which we do it.
    peers: The others.
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
  told = {
    'agent': agent,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    'one_by_one': one_by_one,
    'topology': topology,
  }
  return Run(name, 'repertory', told, steps)


def in_both_ways(
  agent: str, settings: Mapping[str, Any], steps: tuple[int, int], size: int
) -> tuple[Run, Run]:
  """Has a batch of CartPole as arrays, and stepped one by one."""

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
  mark: float = 1.0,
  **more: Any,
) -> Run:
  """Returns a run of Stable-Baselines3 or of SBX."""
  name = {'stable_baselines3': 'Stable-Baselines3', 'sbx': 'SBX (JAX)'}[library]
  told = {
    'algorithm': algorithm,
    'environment': environment,
    'environments': environments,
    'settings': settings,
    **more,
  }
  return Run(f'{name} {algorithm}', library, told, steps, mark)


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
  """Returns a run of dm-acme, which has one environment in a process."""
  told = {
    'algorithm': algorithm,
    'environment': environment,
    'hidden_sizes': sizes,
    'settings': settings,
  }
  return Run(f'dm-acme {algorithm}', 'dm_acme', told, steps, 2.0)
