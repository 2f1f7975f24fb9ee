"""Single-threaded replay, actor, learner and evaluator."""

import dataclasses
import sys

from repertory import components
from repertory.components.config import settings
from repertory.launch import nodes
from repertory.launch.coordination import kinds
from repertory.launch.topologies import replay_settings, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Single(replay_settings.ReplayTopology):
  """One actor steps all environments, alternating with the learner."""

  name = 'single'
  help = 'replay, learner, evaluator and one actor in one thread'
  rank = 0
  launch_types = ('local_mt',)
  can_be_deterministic = True
  can_be_eager = True
  replay_choices = ('process', 'reverb', 'server')

  def check(self, experiment):
    super().check(experiment)
    if experiment.deterministic and self.replay not in ('auto', 'process'):
      raise settings.SettingError(
        'replay',
        "must be 'process' with deterministic, since the timing of a server is "
        f'random; got {self.replay!r}.',
      )

  def transports(self, experiment):
    if experiment.deterministic:
      return [components.transports.IN_PROCESS]
    return super().transports(experiment)

  def run(self, session, launcher, interruption, show):
    """Alternates acting and learning, in the same order in every run.

    After each step of the environment batch the learner takes all batches that
    are due.
    """
    with (
      components.runtime.compilation.eagerly(session.experiment.eager),
      nodes.one_thread.supervised(session, interruption, show) as thread,
    ):
      # Replay table, learner, actor and evaluator.
      transport = _make_transport(thread, session, interruption)
      learner = thread.make(
        kinds.LEARNER.name,
        lambda context: nodes.learner.LearnerNode(context, session, transport),
      )
      actor = _make_actor(thread, session, transport, learner)
      evaluator = thread.make_evaluator(learner)

      # Acting and learning alternate; neither blocks on the rate limiter.
      with thread.working(learner, evaluator, [actor]):
        while thread.has_steps_left():
          with thread.named(actor):
            thread.steps += actor.step()
          with thread.named(learner):
            learner.catch_up(actor.num_items, actor.flush)
          thread.evaluate_if_due()
          thread.report_if_due()
    return thread.status

  def call_graph(self, session):
    users = [kinds.ACTOR.name, kinds.LEARNER.name]
    calls = [
      (name, kinds.COORDINATOR.name) for name in (*users, kinds.EVALUATOR.name)
    ]
    if session.transport != components.transports.IN_PROCESS:
      calls += [(name, kinds.REPLAY.name) for name in users]
    return topology.one_thread(calls)


def _make_transport(thread, session, interruption):
  """Makes the transport over a table of this process, or a replay server."""
  if session.transport == components.transports.IN_PROCESS:
    return session.make_in_process_transport(interruption)
  server = thread.make(
    kinds.REPLAY.name, lambda context: nodes.replay.ReplayNode(context, session)
  )
  return session.connect(server.address, interruption)


def _make_actor(thread, session, transport, learner):
  """Makes the actor of all environments; restores that of an exact resume."""
  experiment = session.experiment
  actor = thread.make(
    kinds.ACTOR.numbered(0),
    lambda context: nodes.actor.ActorNode(
      context,
      session,
      range(experiment.num_environments),
      network=learner.network,
      variable_client=components.variables.SharedVariableClient(learner),
      transport=transport,
      # The learner flushes all items before it samples.
      max_pending_items=sys.maxsize,
    ),
  )
  if experiment.deterministic:
    states = transport.actors
    with thread.starting(actor.name):  # It unpickles environments.
      if states.restored:
        actor.restore(states.restored)
      if experiment.checkpoint_replay:
        states.take = nodes.actor.take_states_of(actor)
  return actor
