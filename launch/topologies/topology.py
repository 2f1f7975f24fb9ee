"""Topologies: interface and registry.

A new topology is a file in this folder with a class decorated by `register`;
flags, their help, `repertory graph` and `launch.run` follow from it.

Flags are listed and checked before TensorFlow is imported. So topologies access
nodes through lazily imported packages, as in `nodes.learner.LearnerNode`, and
quote names in annotations.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from repertory.components.config.settings import SettingError
from repertory.launch import launchers
from repertory.launch.coordination import kinds
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import registries
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.platform import interrupts

if TYPE_CHECKING:
  from repertory.components import loggers, specs
  from repertory.components.transports import experience as experience_lib
  from repertory.launch.experiments import session as session_lib


class Graph(NamedTuple):
  """Call graph of a run, for display.

  Attributes:
    nodes: Names of the nodes.
    calls: Pairs of caller and callee.
    frame: Label of a common frame of all nodes, such as 'one thread'; or ''.
    shared: Groups of nodes that share a thread or process, its owner first.
  """

  nodes: Sequence[str]
  calls: Sequence[tuple[str, str]]
  frame: str = ''
  shared: Sequence[Sequence[str]] = ()


def one_thread(calls: Sequence[tuple[str, str]]) -> Graph:
  """Returns the call graph of nodes in one thread."""
  names = dict.fromkeys(name for call in calls for name in call)
  return Graph(list(names), calls, frame='one thread')


@dataclasses.dataclass(frozen=True)
class Topology(abc.ABC):
  """Division of an agent's run into nodes.

  A subclass is a frozen dataclass of settings, each a `settings.field`, which
  become flags. It overrides `program` to run its nodes with any launcher; or,
  if all runs in one thread, `run`, and `call_graph` for others than learner and
  evaluator.

  Attributes:
    name: Value of `--topology`.
    help: One-line description, for the help of the flag.
    rank: Position in listings, simplest first.
    launch_types: Names of supported launchers; None for all.
    can_be_deterministic: Whether runs can be reproducible from the seed.
    can_be_eager: Whether policy and update can run eagerly.
    has_bellman_updaters: Whether nodes other than the learner can compute
      targets.
  """

  name: ClassVar[str]
  help: ClassVar[str]
  rank: ClassVar[int] = 99
  launch_types: ClassVar[Sequence[str] | None] = None
  can_be_deterministic: ClassVar[bool] = False
  can_be_eager: ClassVar[bool] = False
  has_bellman_updaters: ClassVar[bool] = False

  @property
  def has_program(self) -> bool:
    """Whether a launcher runs its nodes; otherwise all is in one thread."""
    return type(self).program is not Topology.program

  def launched_by(
    self,
    launcher: launcher_lib.Launcher,
    experiment: experiment_lib.Experiment,
  ) -> 'Topology':
    """Returns the topology with defaults that suit the launcher."""
    del launcher, experiment
    return self

  def check(self, experiment: experiment_lib.Experiment) -> None:  # noqa: B027
    """Raises ValueError if the experiment cannot run in this topology."""

  def check_experience(
    self,
    experiment: experiment_lib.Experiment,
    experience: 'experience_lib.Experience',
    spec: 'specs.EnvironmentSpec',
  ) -> None:
    """Raises ValueError if the agent's experience is not supported.

    Args:
      spec: Specs of observations, actions and rewards.
    """
    del experiment, spec
    if experience.with_targets is None or self.has_bellman_updaters:
      return
    able = [n for n, one in topologies().items() if one.has_bellman_updaters]
    raise SettingError(
      experience.with_targets.called['max_size'],
      f"must be left out with topology '{self.name}', where only the learner "
      f'can compute targets. Bellman updaters are in {", ".join(able)}.',
    )

  @abc.abstractmethod
  def transports(self, experiment: experiment_lib.Experiment) -> Sequence[str]:
    """Returns the supported kinds of experience transport, best first.

    `opening.directory` chooses one. A resumed run keeps the transport that
    wrote its tables, if supported; else its tables begin empty.
    """

  def sharding(self, experiment: experiment_lib.Experiment) -> str:
    """Describes how an experiment is divided among nodes.

    A deterministic run resumes only from checkpoints with the same description.
    """
    del experiment
    return self.name

  def smallest_batch(self, experiment: experiment_lib.Experiment) -> int:
    """Returns a common divisor of the adders' numbers of environments."""
    return experiment.num_environments_per_actor

  def program(self, session: 'session_lib.Session') -> launcher_lib.NodeGraph:
    """Makes the node graph of a run."""
    raise NotImplementedError(f'{type(self).__name__} has no node graph.')

  def run(
    self,
    session: 'session_lib.Session',
    launcher: launcher_lib.Launcher,
    interruption: interrupts.Interruption,
    show: 'Callable[[loggers.Status], None]',
  ) -> 'loggers.Status':
    """Runs to the end, or until interrupted.

    Args:
      session: The opened run.
      launcher: Launcher of the nodes, if there are several.
      interruption: Stop signal that ends the run early, with a checkpoint.
      show: Function that displays the status.

    Returns:
      The status at the end.

    Raises:
      failures.NodeError: If a node failed; all others have been ended.
    """
    return launchers.supervision.run(
      self.program, session, interruption, show, launcher
    )

  def call_graph(self, session: 'session_lib.Session') -> Graph:
    """Returns the call graph of a run."""
    if not self.has_program:
      users = kinds.LEARNER.name, kinds.EVALUATOR.name
      return one_thread([(name, kinds.COORDINATOR.name) for name in users])
    program = self.program(session)
    plans = [one for plan in program for one in (plan, *plan.beside)]
    calls = [(plan.name, called) for plan in plans for called in plan.calls]
    # The launcher draws the display and shuts the nodes down.
    calls += [('launcher', name) for name in program.served]
    return Graph(
      ['launcher', *(plan.name for plan in plans)],
      calls,
      shared=[plan.names for plan in program if plan.beside],
    )


def lay_out(
  experiment: experiment_lib.Experiment,
  topology: str | Topology,
  launcher: str | launcher_lib.Launcher,
) -> tuple[Topology, launcher_lib.Launcher]:
  """Checks an experiment's topology and launcher, given by name or as objects.

  Returns both; the topology has defaults that suit the launcher.

  Raises:
    ValueError: If they do not support each other, or the experiment.
  """
  if isinstance(topology, str):
    topology = get(topology)()
  if isinstance(launcher, str):
    launcher = launcher_lib.get(launcher)()
  topology = topology.launched_by(launcher, experiment)
  check_launch(topology, launcher, experiment.deterministic, experiment.eager)
  topology.check(experiment)
  return topology, launcher


def names_of_able(setting: str) -> str:
  """Lists the topologies that support a setting, 'deterministic' or 'eager'."""
  return ', '.join(
    name
    for name, kind in topologies().items()
    if getattr(kind, f'can_be_{setting}')
  )


def check_launch(
  topology: Topology,
  launcher: launcher_lib.Launcher,
  deterministic: bool,
  eager: bool,
) -> None:
  """Raises ValueError if a topology does not support a launcher or mode."""
  allowed = topology.launch_types
  if allowed is not None and launcher.name not in allowed:
    raise SettingError(
      'launch_type',
      f'must be {" or ".join(allowed)}, or left out, with topology '
      f"'{topology.name}', got {launcher.name!r}.",
    )
  if topology.has_program:
    launcher.check()
  for setting, is_set, why in (
    ('deterministic', deterministic, 'where learning depends on the timing of '
     'nodes'),
    ('eager', eager, 'got true (also set by '
     '`tf.config.run_functions_eagerly(True)`)'),
  ):  # fmt: skip
    if is_set and not getattr(topology, f'can_be_{setting}'):
      raise SettingError(
        setting,
        f"must be false with topology '{topology.name}', {why}. It can be true "
        f'with {names_of_able(setting)}.',
      )


_REGISTRY: registries.Registry[type[Topology]] = registries.Registry(
  'repertory.launch.topologies', 'topology'
)
# `register` is a decorator of topologies.
register, get = _REGISTRY.add, _REGISTRY.get


def topologies() -> Mapping[str, type[Topology]]:
  """Returns all topologies by name."""
  return _REGISTRY.entries
