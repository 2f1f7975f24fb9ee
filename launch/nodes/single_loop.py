"""Single-threaded run of one actor and one learner."""

import sys
from collections.abc import Sequence
from typing import cast

from repertory.components import replay, transports, variables
from repertory.components.transports import experience as experience_lib
from repertory.launch.coordination import kinds
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.nodes import bellman_updater, run_loop
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.nodes import replay as replay_lib


def calls(
  transport: str, experience: experience_lib.Experience
) -> Sequence[tuple[str, str]]:
  """Returns the pairs (caller, callee) of nodes."""
  users = [kinds.ACTOR.name, kinds.LEARNER.name]
  if experience.with_targets is not None:
    users.insert(1, kinds.BELLMAN_UPDATER.name)
  clients = [*users, kinds.EVALUATOR.name]
  found = [(name, kinds.COORDINATOR.name) for name in clients]
  if transport == transports.ReverbTransport.kind:
    found += [(name, kinds.REPLAY.name) for name in users]
  return found


# Producer of the learner's items.
_Source = actor_lib.ActorNode | bellman_updater.BellmanUpdaterNode


class SingleLoop(run_loop.RunLoop):
  """Runs one actor, one learner and possibly a Bellman updater in one thread.

  The rate limiter is on, as in every topology. After each step of the
  environment batch the learner takes the batches that are due. With a Bellman
  updater, that one takes them, and after each batch of targets the learner
  takes the target batches that are due.
  """

  _snapshots: actor_lib.SingleActorSnapshots | None = None
  _updater: bellman_updater.BellmanUpdaterNode | None = None

  def _make_learner(self):
    session = self._session
    transport = self._make_transport()
    learner = self._learner_at_ratio = self._add(
      kinds.LEARNER.name,
      lambda context: learner_lib.LearnerNode(
        context, session, transport.learned
      ),
    )
    if session.experience.with_targets is not None:
      self._updater = self._add(
        kinds.BELLMAN_UPDATER.numbered(0),
        lambda context: bellman_updater.make_beside(
          context,
          session,
          learner,
          learner.exports,
          transport,
          max_pending_items=sys.maxsize,
        ),
      )
    self._actor = self._add(
      kinds.ACTOR.numbered(0),
      lambda context: actor_lib.ActorNode(
        context,
        session,
        range(session.experiment.num_environments),
        network=learner.network,
        variable_client=variables.SharedVariableClient(learner),
        transport=transport,
        # The learner flushes all items before it samples.
        max_pending_items=sys.maxsize,
      ),
    )
    if session.experiment.deterministic:
      states = cast(transports.InProcessTransport, transport).actors
      with self._named(self._actor.name):
        if states.restored:
          self._actor.restore(states.restored)
        if session.experiment.checkpoint_replay:
          self._snapshots = actor_lib.SingleActorSnapshots(self._actor)
          states.source = self._snapshots
    return learner

  def _make_transport(self) -> transports.Transport:
    session, interruption = self._session, self._interruption
    if session.transport == transports.InProcessTransport.kind:
      return session.make_in_process_transport(interruption)
    server = self._add(
      kinds.REPLAY.name,
      lambda context: replay_lib.ReplayNode(context, session),
    )
    timeout_seconds = session.experiment.timeout_seconds
    return session.make_transport(
      replay.Connection(server.address, timeout_seconds, interruption)
    )

  def _iterate(self):
    with self._named(self._actor.name):
      num_steps = self._actor.step()
    if self._updater is None:
      self._learn(self._actor)
      return num_steps
    updater = self._updater
    with self._named(updater.name):
      updater.catch_up(
        self._actor.num_items, self._actor.flush, lambda: self._learn(updater)
      )
    return num_steps

  def _learn(self, source: _Source) -> None:
    """Runs the learner until no batch is due."""
    with self._named(self._learner_at_ratio.name):
      self._learner_at_ratio.catch_up(source.num_items, source.flush)

  def _flush(self):
    self._actor.flush()
    if self._updater is not None:
      self._updater.flush()

  def _save_in_spite_of_failure(self, failed):
    if self._snapshots is not None and failed == self._actor.name:
      self._snapshots.give_up()  # It may have failed in the middle of a step.
    super()._save_in_spite_of_failure(failed)
