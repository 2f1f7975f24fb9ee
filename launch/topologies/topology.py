"""What a topology is, and which there are.

A new one is a file in this folder with a class that `register` decorates: flags
and their help, `repertory graph` and `launch.run` follow from it.

Flags are told of, and wrong ones refused, before TensorFlow is imported. So a
topology reaches what it runs by its package, `nodes.learner.LearnerNode`, which
imports it then; and names in annotations are quoted.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from repertory import components
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib
from repertory.launch import launchers, registries
from repertory.launch.host import interrupts
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.launchers import program as program_lib

if TYPE_CHECKING:
  from repertory.components import experience as experience_lib
  from repertory.components import loggers, specs
  from repertory.launch.runs import session as session_lib


class Graph(NamedTuple):
  """Who calls whom, to be shown.

  Attributes:
    nodes: Their names.
    calls: Pairs of caller and called.
    frame: What all nodes are in, if that is one thing; else ''.
    shared: Groups of nodes that have one thread or process between them, the
      one whose it is before those beside it.
  """

  nodes: Sequence[str]
  calls: Sequence[tuple[str, str]]
  frame: str = ''
  shared: Sequence[Sequence[str]] = ()


def one_thread(calls: Sequence[tuple[str, str]]) -> Graph:
  """Returns who calls whom where all take turns in one thread."""
  names = dict.fromkeys(name for call in calls for name in call)
  return Graph(list(names), calls, frame='one thread')


@dataclasses.dataclass(frozen=True)
class Stage:
  """Where a run takes place, as far as its user sees it.

  Attributes:
    title: What the display calls it.
    interruption: Ends the run early when set; the checkpoint is written.
    show: Takes the status now and then.
    launcher: Hosts the nodes of a topology with several.
  """

  title: str
  interruption: interrupts.Interruption
  show: 'Callable[[loggers.Status], None]'
  launcher: launcher_lib.Launcher


@dataclasses.dataclass(frozen=True)
class Topology(abc.ABC):
  """What runs where: one agent, wired in one way.

  A subclass is a frozen dataclass of its own settings, each a
  `settings.field`, which become flags.
  It overrides `program`, and any launcher hosts its nodes; or, if all is in one
  thread, `run` and `call_graph`.

  Attributes:
    name: What `--topology` takes.
    help: What runs where, in a line, for the help of the flag.
    rank: Where it is listed, the simplest first.
    launch_types: Names of the launchers that can host it; None for all.
    can_be_deterministic: Whether all can be made to follow from the seed.
    can_be_eager: Whether policy and update can run eagerly.
    has_bellman_updaters: Whether others than the learner can compute targets.
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
    """Whether a launcher hosts its nodes; else all is in one thread."""
    return type(self).program is not Topology.program

  def title(
    self,
    experiment: experiment_lib.Experiment,
    launcher: launcher_lib.Launcher,
  ) -> str:
    """Returns what the display calls a run."""
    title = f'{experiment.agent} on {experiment.environment}, {self.name}'
    return f'{title} ({launcher.title})' if self.launch_types is None else title

  def describe_wiring(self, launcher: launcher_lib.Launcher) -> dict[str, Any]:
    """Returns, as plain values, what runs where."""
    wiring = {
      'topology': self.name,
      'topology_settings': dataclasses.asdict(self),
    }
    if self.launch_types is None:
      wiring['launch_type'] = launcher.name
      wiring['launch_settings'] = dataclasses.asdict(launcher)
    return wiring

  def launched_by(
    self,
    launcher: launcher_lib.Launcher,
    experiment: experiment_lib.Experiment,
  ) -> 'Topology':
    """Returns it with defaults that suit where its nodes will be."""
    del launcher, experiment
    return self

  def check(self, experiment: experiment_lib.Experiment) -> None:  # noqa: B027
    """Raises ValueError if the experiment cannot run so."""

  def check_experience(
    self,
    experiment: experiment_lib.Experiment,
    experience: 'experience_lib.Experience',
    spec: 'specs.EnvironmentSpec',
  ) -> None:
    """Raises ValueError if the agent's experience cannot go its way so.

    Args:
      spec: What the agent takes and gives.
    """
    del experiment, spec
    if experience.labeled is None or self.has_bellman_updaters:
      return
    able = [n for n, one in topologies().items() if one.has_bellman_updaters]
    raise SettingError(
      experience.labeled.called['max_size'],
      f"must be left out with topology '{self.name}', where nobody but the "
      'learner can compute targets. Bellman updaters are in '
      f'{", ".join(able)}.',
    )

  def roads(self, experiment: experiment_lib.Experiment) -> Sequence[str]:
    """Returns the kinds of road that may carry experience, the best first.

    Which is taken, `runs.preflight.find_ways` tells; but a run that is resumed
    goes on with the one that wrote its tables, if that is among them.
    """
    del experiment
    return [components.roads.ReverbRoad.kind]

  def division(self, experiment: experiment_lib.Experiment) -> str:
    """Returns, in words, how an experiment is divided among nodes.

    A deterministic run goes on from checkpoints of the same words.
    """
    del experiment
    return self.name

  def smallest_batch(self, experiment: experiment_lib.Experiment) -> int | None:
    """Returns what the environments of each adder are a multiple of.

    Returns:
      None for the environments of an actor.
    """
    return None

  def program(
    self, session: 'session_lib.Session', title: str
  ) -> program_lib.Program:
    """Plans the nodes of a run.

    Args:
      title: What the display calls it.
    """
    raise NotImplementedError(f'{type(self).__name__} has no program.')

  def run(
    self, session: 'session_lib.Session', stage: Stage
  ) -> 'loggers.Status':
    """Runs to the end, or until interrupted.

    Returns:
      The status at the end.

    Raises:
      failures.NodeError: If a node failed; all others have been ended.
    """
    return launchers.supervision.run(
      lambda session: self.program(session, stage.title),
      session,
      stage.title,
      stage.interruption,
      stage.show,
      stage.launcher,
    )

  def call_graph(self, session: 'session_lib.Session') -> Graph:
    """Returns who calls whom."""
    program = self.program(session, '')
    plans = [one for plan in program for one in (plan, *plan.beside)]
    calls = [(plan.name, called) for plan in plans for called in plan.calls]
    # The launcher draws the display, and stops the program.
    calls += [('launcher', name) for name in program.served]
    return Graph(
      ['launcher', *(plan.name for plan in plans)],
      calls,
      shared=[
        [plan.name, *(one.name for one in plan.beside)]
        for plan in program
        if plan.beside
      ],
    )


def check_launch(
  topology: Topology,
  launcher: launcher_lib.Launcher,
  deterministic: bool,
  eager: bool,
) -> None:
  """Raises ValueError if a launcher or run does not go with a topology."""
  allowed = topology.launch_types
  if allowed is not None and launcher.name not in allowed:
    raise SettingError(
      'launch_type',
      f'must be {" or ".join(allowed)}, or left out, with topology '
      f"'{topology.name}', got {launcher.name!r}.",
    )
  if topology.has_program:
    launcher.check()
  if deterministic and not topology.can_be_deterministic:
    able = [
      name for name, one in topologies().items() if one.can_be_deterministic
    ]
    raise SettingError(
      'deterministic',
      f"must be false with topology '{topology.name}': what is learned from "
      'depends there on who is faster. It can be true with '
      f'{", ".join(able)}.',
    )
  if eager and not topology.can_be_eager:
    able = [name for name, one in topologies().items() if one.can_be_eager]
    raise SettingError(
      'eager',
      f"must be false with topology '{topology.name}', got true (which "
      '`tf.config.run_functions_eagerly(True)` sets, too). It can be true with '
      f'{", ".join(able)}.',
    )


_Kind = TypeVar('_Kind', bound=type[Topology])

_REGISTRY: registries.Registry[type[Topology]] = registries.Registry(
  'repertory.launch.topologies', 'topology'
)


def register(topology: _Kind) -> _Kind:
  """Lets a topology be chosen by its name; a decorator."""
  _REGISTRY.register(topology.name, topology, topology.rank)
  return topology


def get(name: str) -> type[Topology]:
  """Returns the topology of that name.

  Raises:
    ValueError: If there is none, with the nearest name.
  """
  return _REGISTRY.get(name)


def topologies() -> Mapping[str, type[Topology]]:
  """Returns all topologies by name."""
  return _REGISTRY.entries
