"""Central inference: thin actors around inference servers.

Replay, coordinator, learner and evaluator are those of `distributed`. Actors
stream time steps to an inference server, in the learner's process or in its
own, which selects actions and writes to replay.
"""

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from repertory import components
from repertory.agents.interface import config_checks
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices
from repertory.launch import experiments, nodes
from repertory.launch.coordination import kinds
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.topologies import (
  device_settings,
  parts,
  replay_settings,
  topology,
)

if TYPE_CHECKING:
  from repertory.launch.experiments import session as session_lib


@topology.register
@dataclasses.dataclass(frozen=True)
class Central(
  replay_settings.BellmanUpdaterTopology,
  device_settings.InferenceDevicesTopology,
):
  """Central inference, after SEED RL: https://arxiv.org/abs/1910.06591."""

  name = 'central'
  help = 'inference servers select actions; actors only step environments'
  rank = 2

  num_inference_servers: int = settings.field(
    0,
    'inference servers in their own nodes; 0 for one per inference device, '
    "in the learner's node.",
  )
  double_buffering: bool | None = settings.field(
    None,
    'actors step one half of their environments while the other half waits for '
    'actions; default: true with several hosts and environments per actor.',
  )

  @property
  def num_servers(self) -> int:
    """Number of inference servers."""
    return self.num_inference_servers or max(1, len(self.inference_devices))

  @property
  def num_connections(self) -> int:
    """Connections per actor, each for a part of its environments."""
    return 2 if self.double_buffering else 1

  def lane_sizes(self, experiment: experiment_lib.Experiment) -> list[int]:
    """Returns the number of environments of each connection of an actor."""
    size, count = experiment.num_environments_per_actor, self.num_connections
    return [len(range(first, size, count)) for first in range(count)]

  def launched_by(self, launcher, experiment):
    if self.double_buffering is not None:
      return self
    has_halves = experiment.num_environments_per_actor > 1
    return dataclasses.replace(
      self, double_buffering=launcher.spans_hosts and has_halves
    )

  def smallest_batch(self, experiment):
    return math.gcd(*self.lane_sizes(experiment))

  def check(self, experiment):
    super().check(experiment)
    config_checks.check_at_least(self, 0, 'num_inference_servers')
    if 0 < self.num_inference_servers < len(self.inference_devices):
      raise SettingError(
        'inference_devices',
        f'must be at most {self.num_inference_servers}, one per inference '
        f'server; got {list(self.inference_devices)}.',
      )
    config_checks.check(
      experiment,
      'num_actors',
      self.num_servers <= experiment.num_actors,
      f'at least the number of inference servers, {self.num_servers}, or some '
      'are idle',
    )
    if self.double_buffering and experiment.num_environments_per_actor < 2:
      raise SettingError(
        'environments_per_actor',
        'must be at least 2 for double buffering, which halves them; got '
        f'{experiment.num_environments_per_actor}.',
      )

  def program(self, session):
    planned = parts.make_program(session)
    session = session.without_callbacks()
    count = self.num_servers
    servers = [self._plan_server(session, index) for index in range(count)]
    is_apart = self.num_inference_servers > 0
    planned.plan(
      kinds.LEARNER.name,
      _make_learner,
      [kinds.REPLAY.name],
      beside=() if is_apart else servers,
      session=session,
      central=self,
    )
    self.add_bellman_updaters(planned, session)
    for server in servers if is_apart else ():
      planned.add(server)
    homes = [one.name if is_apart else kinds.LEARNER.name for one in servers]
    planned.plan(
      kinds.EVALUATOR.name,
      parts.make_evaluator,
      [kinds.LEARNER.name],
      session=session,
    )
    experiment = session.experiment
    for index in range(experiment.num_actors):
      ids = parts.environment_ids(session, index)
      planned.plan(
        kinds.ACTOR.numbered(index),
        nodes.thin_actor.ThinActorNode,
        [homes[index % count]],
        server=servers[index % count].name,
        environment_ids=list(ids),
        seeds=session.environment_seeds(ids),
        environments=experiments.environment_batches.settings_of(experiment),
        spec=session.spec,
        timeout_seconds=experiment.timeout_seconds,
        num_connections=self.num_connections,
      )
    return planned

  def _plan_server(
    self, session: 'session_lib.Session', index: int
  ) -> launcher_lib.PlannedNode:
    num_actors = len(
      range(index, session.experiment.num_actors, self.num_servers)
    )
    is_apart = self.num_inference_servers > 0
    learner = [kinds.LEARNER.name] if is_apart else []
    return launcher_lib.PlannedNode(
      kinds.INFERENCE.numbered(index),
      functools.partial(
        _make_server,
        is_apart=is_apart,
        session=session,
        # Batch size of each connection's requests.
        rows=num_actors * self.lane_sizes(session.experiment),
        device=self.inference_device(index),
      ),
      [kinds.REPLAY.name, *learner, kinds.COORDINATOR.name],
    )


def _make_learner(context, session, central):
  names = central.learner_devices
  if not central.num_inference_servers:
    names += central.inference_devices
  devices.prepare('learner_devices and inference_devices', names)
  with central.on_learner_devices():
    return parts.make_learner(context, session)


def _make_server(context, session, is_apart, device, **settings):
  """Makes an inference server, in the learner's process or apart."""
  if is_apart:
    devices.prepare('inference_devices', [device] if device else [])
  with components.runtime.compilation.on_device(device):
    if is_apart:
      network, variable_client = parts.fetch(context, session)
    else:
      # The learner in this process has initialized its variables.
      network = session.experiment.builder.make_network(session.spec)
      variable_client = components.variables.LocalVariableClient(
        context.beside.publisher, network.variables
      )
  return nodes.inference.InferenceNode(
    context,
    session,
    network=network,
    variable_client=variable_client,
    transport=parts.connect(context, session),
    device=device,
    **settings,
  )
