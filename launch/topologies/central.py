"""Thin actors around an inference server, as a Launchpad program.

Replay, coordinator and learner are those of `distributed`. Actors and evaluator
stream their timesteps to an inference server, in the learner's process or in
one of its own, which acts for them all and writes to replay.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable

import launchpad as lp

from repertory.components import (
  compilation,
  data_parallel,
  devices,
  loggers,
  signals,
  variables,
)
from repertory.launch import experiment as experiment_lib
from repertory.launch import failures
from repertory.launch.host import interrupts, lifetime
from repertory.launch.launchers import services as services_lib
from repertory.launch.launchers import supervision
from repertory.launch.nodes import inference, thin
from repertory.launch.runs import session as session_lib
from repertory.launch.topologies import distributed

_JOIN_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Placement:
  """Where inference and learning run.

  Attributes:
    num_inference_servers: Inference servers in processes (or threads) of their
      own; 0 for one per inference device in the learner's process.
    inference_devices: Of the inference servers, in turn; none for TensorFlow's
      choice.
    learner_devices: Of the learner: none for TensorFlow's choice; among several
      the rows of its networks are divided, and all else is on the first.
    double_buffering: Whether actors step one half of their environments while
      the other half waits for its actions.
  """

  num_inference_servers: int = 0
  inference_devices: tuple[str, ...] = ()
  learner_devices: tuple[str, ...] = ()
  double_buffering: bool = False

  def __post_init__(self):
    if self.num_inference_servers < 0:
      raise ValueError(
        'num_inference_servers must be at least 0, got '
        f'{self.num_inference_servers}.'
      )
    devices.check('inference_devices', self.inference_devices)
    devices.check('learner_devices', self.learner_devices)
    if 0 < self.num_inference_servers < len(self.inference_devices):
      raise ValueError(
        'inference_devices must be at most one for each of the '
        f'{self.num_inference_servers} inference servers, or some are not used;'
        f' got {list(self.inference_devices)}.'
      )
    if len(set(self.learner_devices)) < len(self.learner_devices):
      raise ValueError(
        f'learner_devices must differ, got {list(self.learner_devices)}.'
      )

  @property
  def num_servers(self) -> int:
    """Inference servers, wherever they are."""
    return self.num_inference_servers or max(1, len(self.inference_devices))

  @property
  def num_lanes(self) -> int:
    """Parts into which each actor divides its environments."""
    return 2 if self.double_buffering else 1

  def device_of(self, index: int) -> str | None:
    """Returns the device of an inference server."""
    names = self.inference_devices
    return names[index % len(names)] if names else None

  def rows_of(self, index: int, session: session_lib.Session) -> list[int]:
    """Returns the size of each request that an inference server will get."""
    num_actors = len(
      range(index, session.experiment.num_actors, self.num_servers)
    )
    return num_actors * session.lane_sizes

  def check(self, experiment: experiment_lib.Experiment) -> None:
    """Raises ValueError if the experiment cannot be placed so."""
    if self.num_servers > experiment.num_actors:
      raise ValueError(
        f'num_actors must be at least the number of inference servers, '
        f'{self.num_servers}, or some of them have nothing to do; got '
        f'{experiment.num_actors}.'
      )
    if self.double_buffering and experiment.environments_per_actor < 2:
      raise ValueError(
        'environments_per_actor must be at least 2 for double buffering, which '
        f'halves them; got {experiment.environments_per_actor}.'
      )
    if len(self.learner_devices) > 1 and experiment.builder.config.jit_compile:
      raise ValueError(
        'learner_devices must be one while jit_compile is on, for XLA compiles '
        f'an update for one device; got {list(self.learner_devices)}. Add '
        '--config.jit_compile=false.'
      )


def run(
  session: session_lib.Session,
  title: str,
  interruption: interrupts.Interruption,
  show: Callable[[loggers.Status], None],
  launch_type: str,
  placement: Placement,
) -> loggers.Status:
  """Runs an experiment with central inference; see `distributed.run`."""
  distributed.check_thread()
  return supervision.run(
    lambda session: make_program(session, title, placement),
    session,
    title,
    interruption,
    show,
    launch_type,
  )


def make_program(
  session: session_lib.Session, title: str, placement: Placement
) -> tuple[lp.Program, supervision.Services]:
  """Wires the nodes.

  Returns:
    The program, and the handles of the nodes that the launcher calls.

  Raises:
    ValueError: If the experiment cannot be placed so.
  """
  placement.check(session.experiment)
  program = lp.Program('repertory')
  settings = {'courier_kwargs': distributed.server_settings(session)}
  base = coordinator, replay = distributed.add_base(program, session, title)
  learner = program.add_node(
    lp.CourierNode(
      CentralLearnerService, session, placement, *base, **settings
    ),
    label='learner',
  )
  servers = []
  if placement.num_inference_servers:
    with program.group('inference'):
      for index in range(placement.num_inference_servers):
        node = lp.CourierNode(
          InferenceService,
          session,
          placement,
          *base,
          learner,
          index,
          **settings,
        )
        servers.append(program.add_node(node))
  homes = servers or [learner]
  program.add_node(
    lp.PyClassNode(CentralEvaluatorService, session, homes[0], coordinator),
    label='evaluator',
  )
  with program.group('actor'):
    for index in range(session.experiment.num_actors):
      program.add_node(
        lp.PyClassNode(
          thin.ThinActorService,
          _thin_settings(session, index),
          homes[index % len(homes)],
          coordinator,
        )
      )
  services = supervision.Services(coordinator, replay, learner, tuple(servers))
  distributed.set_timeouts(session, services)
  return program, services


def _thin_settings(
  session: session_lib.Session, index: int
) -> thin.ThinSettings:
  experiment = session.experiment
  size = experiment.environments_per_actor
  ids = range(index * size, (index + 1) * size)
  return thin.ThinSettings(
    name=f'actor/{index}',
    environment_ids=list(ids),
    seeds=session.environment_seeds(ids),
    environments=session_lib.environment_settings(experiment),
    spec=session.spec,
    timeout_seconds=experiment.timeout_seconds,
    num_lanes=session.num_lanes,
  )


class CentralLearnerService(distributed.LearnerService):
  """The learner, with inference servers beside it unless they are elsewhere."""

  def __init__(
    self, session, placement: Placement, coordinator, replay_service
  ):
    with lifetime.failures_reported('learner', coordinator):
      names = placement.learner_devices
      if not placement.num_inference_servers:
        names += placement.inference_devices
      devices.prepare('learner_devices and inference_devices', names)
      device = next(iter(placement.learner_devices), None)
      with (
        compilation.on_device(device),
        data_parallel.over_devices(placement.learner_devices),
      ):
        super().__init__(session, replay_service, coordinator)
    self._serving = signals.StopSignal()
    self._servers: list[inference.InferenceNode] = []
    self._threads: list[threading.Thread] = []
    if placement.num_inference_servers:
      return
    lifetime.share_interpreter()
    publisher = variables.Publisher(self._node.network.variables)
    self._node.publish_to(publisher)
    # The learner has registered; to compile may take longer than it may be
    # silent.
    with lifetime.pulse(
      lambda: coordinator.poll('learner'), signals.StopSignal()
    ):
      for index in range(placement.num_servers):
        name = f'inference/{index}'
        with lifetime.failures_reported(name, coordinator):
          self._servers.append(
            inference.InferenceNode(
              session,
              name,
              publisher,
              distributed.connect(session, replay_service, self._serving),
              coordinator,
              rows=placement.rows_of(index, session),
              device=placement.device_of(index),
              evaluates=index == 0,
            )
          )

  def inference_address(self, name: str) -> str:
    """Returns the address of the server for an actor or the evaluator."""
    return self._servers[_index_of(name) % len(self._servers)].address

  def shutdown(self) -> None:
    self._serving.set()
    super().shutdown()

  def _work(self) -> None:
    for node in self._servers:
      thread = threading.Thread(
        target=_serve,
        # It cannot be started again on its own.
        args=(node, self._coordinator.abort),
        name=node.name,
        daemon=True,
      )
      thread.start()
      self._threads.append(thread)
    try:
      super()._work()
    finally:
      self._serving.set()
      for thread in self._threads:
        thread.join(_JOIN_SECONDS)


class InferenceService(services_lib.Service):
  """An inference server, until the launcher shuts it down."""

  def __init__(
    self,
    session: session_lib.Session,
    placement: Placement,
    coordinator,
    replay_service,
    learner,
    index: int,
  ):
    super().__init__()
    lifetime.isolate(coordinator)
    self._coordinator = coordinator
    self._serving = signals.StopSignal()
    name = f'inference/{index}'
    with lifetime.failures_reported(name, coordinator):
      device = placement.device_of(index)
      devices.prepare('inference_devices', [device] if device else [])
      self._node = inference.InferenceNode(
        session,
        name,
        distributed.RemoteSource(
          learner, session.experiment.timeout_seconds, self._serving
        ),
        distributed.connect(session, replay_service, self._serving),
        coordinator,
        rows=placement.rows_of(index, session),
        device=device,
        evaluates=index == 0,
      )

  def inference_address(self, name: str) -> str:
    del name  # Each server is asked by its own.
    return self._node.address

  def shutdown(self) -> None:
    self._serving.set()
    super().shutdown()

  def _work(self) -> None:
    _serve(self._node, self._coordinator.fail)
    self._shut_down.wait()


class CentralEvaluatorService(distributed.EvaluatorService):
  """The evaluator, for which an inference server acts."""

  def _find_source(self, stop: signals.StopSignal):
    del stop
    if self._session.experiment.evaluation_episodes == 0:
      return ''
    return thin.find_address(
      self._learner,
      'evaluator',
      self._coordinator,
      self._session.experiment.timeout_seconds,
    )


def _serve(
  node: inference.InferenceNode,
  tell: Callable[[failures.Failure], None],
) -> None:
  """Serves and reports until the launcher shuts it down.

  A run that stops early does not end it: who waits for actions would take that
  for a failure before hearing that the run stops. So would they if it failed,
  so its connections end after it has told of that.

  Args:
    node: What serves.
    tell: Takes its failure.
  """

  def report():
    try:
      return node.report()
    except BaseException:
      node.stop()
      raise

  run_stops = signals.StopSignal()
  with (
    contextlib.closing(node),
    lifetime.failures_told(node.name, tell),
    lifetime.pulse(report, run_stops),
    contextlib.suppress(signals.Stopped),
  ):
    node.run()


def _index_of(name: str) -> int:
  """Returns the index of an actor; 0 for the evaluator."""
  return int(name.split('/')[1]) if '/' in name else 0
