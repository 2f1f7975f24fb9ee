"""Sebulba: actor threads and a learner in one process, on separate devices.

There is no replay server: items are passed in memory, and variables are copied
between devices.
"""

import dataclasses
import functools
from concurrent import futures
from typing import TYPE_CHECKING, NamedTuple

from repertory import components
from repertory.agents.interface import config_checks
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices
from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.topologies import device_settings, parts, topology

if TYPE_CHECKING:
  from repertory.components import transports, variables
  from repertory.components.transports import experience as experience_lib


@topology.register
@dataclasses.dataclass(frozen=True)
class Sebulba(device_settings.InferenceDevicesTopology):
  """Podracer's Sebulba: https://arxiv.org/abs/2104.06272."""

  name = 'sebulba'
  help = (
    'learner, evaluator and actors in threads of one process, without a replay '
    'server'
  )
  rank = 4
  launch_types = ('local_mt',)
  can_be_deterministic = True

  actor_threads: int = settings.field(
    0,
    'actor threads, among which the environments of all actors are divided; '
    '0 for one per actor.',
  )

  def num_threads(self, experiment: experiment_lib.Experiment) -> int:
    """Returns the number of actor threads."""
    return self.actor_threads or experiment.num_actors

  def transports(self, experiment):
    return [components.transports.InProcessTransport.kind]

  def sharding(self, experiment):
    num_threads = self.num_threads(experiment)
    threads = 'thread that acts' if num_threads == 1 else 'threads that act'
    return f'{self.name} with {num_threads} {threads}'

  def check(self, experiment):
    super().check(experiment)
    config_checks.check_at_least(self, 0, 'actor_threads')
    num_threads = self.num_threads(experiment)
    num_environments = experiment.num_environments
    if num_environments % num_threads:
      raise SettingError(
        'actor_threads',
        f'must divide the {num_environments} environments of all actors '
        f'evenly, got {num_threads}.',
      )
    if len(self.inference_devices) > num_threads:
      raise SettingError(
        'inference_devices',
        f'must be at most {num_threads}, one per actor thread; got '
        f'{list(self.inference_devices)}.',
      )
    # Here, since virtual CPU devices must be set up before TensorFlow is used.
    names = (*self.learner_devices, *self.inference_devices)
    devices.prepare('learner_devices and inference_devices', names)

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    if experiment.deterministic and not (
      _inserts_round_robin(experience)
      and getattr(experience.items, 'are_unrolls', False)
    ):
      raise SettingError(
        'deterministic',
        f"must be false in topology '{self.name}' for agent "
        f'{experiment.agent!r}: only unrolls that span episodes and are used '
        'once arrive in an order that does not depend on thread timing. '
        'It can be true in single, anakin and offline.',
      )

  def program(self, session):
    planned = parts.make_program(session, has_server=False)
    num_threads = self.num_threads(session.experiment)
    # Made in the learner's thread; the other ones wait for it.
    made: futures.Future[_Learner] = futures.Future()
    planned.plan(
      kinds.LEARNER.name,
      _make_learner,
      session=session,
      num_actors=num_threads,
      topology=self,
      made=made,
    )
    planned.plan(
      kinds.EVALUATOR.name,
      _make_evaluator,
      session=session,
      device=self.inference_device(0),
      made=made,
    )
    size = session.experiment.num_environments // num_threads
    for index in range(num_threads):
      planned.plan(
        kinds.ACTOR.numbered(index),
        _make_actor,
        session=session,
        index=index,
        ids=range(index * size, (index + 1) * size),
        device=self.inference_device(index),
        made=made,
      )
    return planned

  def call_graph(self, session):
    graph = super().call_graph(session)
    # Data passed in memory, which are not calls.
    pairs = [
      (name, kinds.LEARNER.name)
      for name in graph.nodes
      if name.split('/')[0] in (kinds.EVALUATOR.name, kinds.ACTOR.name)
    ]
    return graph._replace(calls=[*graph.calls, *pairs])


class _Learner(NamedTuple):
  """Parts of the learner that evaluator and actors use."""

  publisher: 'variables.Publisher'
  transport: 'transports.InProcessTransport'
  rounds: 'nodes.rounds.Rounds | None'  # Schedule of a deterministic run.


def _make_learner(context, session, num_actors, topology, made):
  """Makes transport, learner, publisher and rounds, in this order."""
  is_deterministic = session.experiment.deterministic
  interruption = context.stop
  if is_deterministic:
    context = nodes.rounds.finishing_rounds(context)
  with topology.on_learner_devices():
    transport = session.make_in_process_transport(
      context.stop,
      num_actors if _inserts_round_robin(session.experience) else None,
    )
    if is_deterministic:
      rounds = nodes.rounds.Rounds(session, num_actors, transport)
      learner = nodes.rounds.RoundLearnerNode(
        context, session, transport, rounds, interruption
      )
    else:
      rounds = None
      learner = nodes.learner.LearnerNode(context, session, transport)
    # Before the first update, which must not overlap with a read.
    publisher = learner.publisher
  made.set_result(_Learner(publisher, transport, rounds))
  return learner


def _make_evaluator(context, session, device, made):
  """Makes the evaluator, with a copy of the learner's variables."""

  def follow():
    publisher = _wait_for(made, context, session).publisher
    network = session.experiment.builder.make_network(session.spec)
    return network, components.variables.LocalVariableClient(
      publisher, network.variables
    )

  with components.runtime.compilation.on_device(device):
    return nodes.evaluator.EvaluatorNode(context, session, follow)


def _make_actor(context, session, index, ids, device, made):
  """Makes an actor, with a copy of the learner's variables."""
  publisher, transport, rounds = _wait_for(made, context, session)
  make_node = nodes.actor.ActorNode
  if rounds is not None:
    context = nodes.rounds.finishing_rounds(context)
    make_node = functools.partial(nodes.rounds.RoundActorNode, rounds, index)
  with components.runtime.compilation.on_device(device):
    network = session.experiment.builder.make_network(session.spec)
    wait = components.replay.local.WaitPolicy(
      session.experiment.timeout_seconds, context.stop
    )
    return make_node(
      context,
      session,
      ids,
      network=network,
      variable_client=components.variables.LocalVariableClient(
        publisher, network.variables
      ),
      transport=transport.at(wait, index),
    )


def _wait_for(made, context, session) -> _Learner:
  """Waits until the learner is made.

  Networks are made after it: they draw from the same random seed.
  """
  return context.wait_for(
    kinds.LEARNER.name,
    lambda: made.result() if made.done() else None,
    session.experiment.timeout_seconds,
  )


def _inserts_round_robin(experience: 'experience_lib.Experience') -> bool:
  """Returns whether actors insert their items in turns.

  They do if the unrolls of all environments end together, so none is ahead of
  the slowest by more than its pending items.
  """
  return experience.table.is_queue and experience.items.slots_end_together
