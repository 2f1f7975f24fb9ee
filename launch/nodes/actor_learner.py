"""Actor-learner: one of several nodes that each act and learn, and gossip."""

import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components import gossip, variables
from repertory.components.runtime import signals
from repertory.launch.coordination import reports
from repertory.launch.nodes import (
  actor,
  checkpoint_transfer,
  gossip_learner,
  gossip_means,
  gossip_messages,
  initialization_lock,
  lockstep,
  node,
)
from repertory.launch.opening import session as session_lib
from repertory.launch.opening import shares


@dataclasses.dataclass(frozen=True)
class LearnerIndex:
  """Index of an actor-learner among all, and its mixing settings.

  Attributes:
    index: Index of the node, from 0.
    names: Names of all actor-learners.
    graph: Communication graph, see `gossip.in_neighbors`.
    mix_period: Learner steps between mixings.
    mix_weight: Weight of the neighbors in the mix, see
      `gossip.neighbor_weight`.
  """

  index: int
  names: Sequence[str]
  graph: str
  mix_period: int
  mix_weight: float | None


class ActorLearnerNode(actor.ActorNode):
  """Steps its share of the environments, and learns as batches become due.

  Attributes:
    learner: Learner of this node.
  """

  def __init__(
    self,
    context: node.Context,
    own: session_lib.Session,
    learner_index: LearnerIndex,
    gossip_node: Any,
  ):
    """Makes actor and learner, and restores their state.

    Args:
      context: Context of this node, 'actor_learner/<index>'.
      own: Its own session, as of a new run, see `shares.make_sessions`.
      learner_index: Its index among the others, and mixing settings.
      gossip_node: Client of the gossip node, which already listens.
    """
    self._caller = tuple(context.caller)
    self._gossip = gossip_node
    first_stop = context.stop
    if own.experiment.deterministic:
      context = lockstep.finish_rounds(context)
    context.report_start('fetching its initial state')
    own, beginning = self._begin(own)
    self._counts, self._iterations = own.counts, 0
    self._followed_order = self._missed_order = 0
    self._orders = gossip_messages.Orders()
    self._schedule = None
    if own.experiment.deterministic:
      self._schedule = _Schedule(own, first_stop)
    with (
      initialization_lock.held(context, own.experiment.timeout_seconds),
      contextlib.ExitStack() as unless_made,
    ):
      self._make(context, own, learner_index, beginning, unless_made)
      if len(learner_index.names) > 1:
        self._join(context, learner_index)
      unless_made.pop_all()

  def _make(
    self,
    context: node.Context,
    own: session_lib.Session,
    learner_index: LearnerIndex,
    beginning: gossip_messages.LearnerStart,
    unless_made: contextlib.ExitStack,
  ) -> None:
    """Makes the learner, then the actor."""
    part = _LearnerCoordinator(context.coordinator, context.name)
    part.save = lambda: self._describe(own)
    transport = own.make_in_process_transport(context.stop)
    self.learner = gossip_learner.GossipLearnerNode(
      dataclasses.replace(context, coordinator=part),
      own,
      transport,
      beginning,
      learner_index.mix_period,
    )
    unless_made.callback(self.learner.close)
    size = own.experiment.num_environments
    super().__init__(
      context,
      own,
      range(learner_index.index * size, (learner_index.index + 1) * size),
      network=self.learner.network,
      variable_client=variables.SharedVariableClient(self.learner),
      transport=transport,
      # The learner flushes all items before it samples.
      max_pending_items=sys.maxsize,
      step_budget=self._schedule,
    )
    unless_made.callback(super().close)
    if self._schedule is not None:
      actor.restore_actor(own, self, transport.actors)
    self._upload = checkpoint_transfer.CheckpointUpload(
      own, self.learner.checkpoint_writer, self._gossip, self._caller
    )

  def _join(self, context: node.Context, learner_index: LearnerIndex) -> None:
    self.learner.join(
      gossip.Neighborhood.of(
        learner_index.graph,
        learner_index.index,
        learner_index.names,
        learner_index.mix_weight,
        keeps_step=self._schedule is not None,
      ),
      context.coordinator.address_of,
      context.caller,
      context.interface,
    )

  @property
  def description(self):
    described = {**self.learner.description, **super().description}
    address = self.learner.address
    return described if address is None else {**described, 'address': address}

  def step(self) -> int:
    num_steps = super().step()
    self.learner.catch_up(self.num_items, self.flush)
    self._iterations += 1
    if self._schedule is not None:
      self._schedule.iterations = self._iterations
    self._follow_orders()
    return num_steps

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      super().run()
    schedule = self._schedule
    is_last = schedule is not None and schedule.has_taken_all
    # Else it was stopped at a step from which no run could resume.
    if schedule is None or is_last or schedule.is_at_end:
      self.learner.end()
      self._send_variables()
      label = gossip_messages.Label(0, self._iterations, is_last)
      self._upload.finish(label)

  def report(self) -> reports.HeartbeatReply:
    reply = super().report()
    schedule = self._schedule
    self._orders = orders = self._gossip.exchange(
      self._caller,
      gossip_messages.LearnerReport(
        self.learner.version,
        self._iterations,
        self.mean_return,
        self.learner.tables,
        self.learner.figures,
        self._missed_order,
        wants_end=schedule is not None and schedule.wants_end,
      ),
    )
    if schedule is not None:
      schedule.end_at = orders.end_at
    if orders.wants_variables:
      self._send_variables()
    return reply

  def close(self) -> None:
    """Closes learner, actor and uploads."""
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      stack.callback(self._upload.close)
      stack.callback(self.learner.close)
      stack.callback(super().close)

  def _begin(
    self, own: session_lib.Session
  ) -> tuple[session_lib.Session, gossip_messages.LearnerStart]:
    """Returns session and initial state, after fetching a checkpoint."""
    shutil.rmtree(own.experiment.directory, ignore_errors=True)
    beginning = self._gossip.begin(self._caller)
    if beginning.has_checkpoint:
      path = os.path.join(own.experiment.directory, '.archive')
      checkpoint_transfer.download(
        path, lambda offset: self._gossip.read_checkpoint(self._caller, offset)
      )
      checkpoint_transfer.unpack(path, own.checkpoint_directory)
      os.remove(path)
      own = shares.resume(own)
    elif beginning.whole:
      counts = {**own.counts, **beginning.counts}
      own = dataclasses.replace(own, counts=counts)
    return own, beginning

  def _follow_orders(self) -> None:
    """Begins an ordered checkpoint, and advances the current one."""
    self._upload.advance()
    orders = self._orders
    if orders.number <= max(self._followed_order, self._missed_order):
      return
    if orders.save_at is not None and self._iterations < orders.save_at:
      return
    if self._upload.is_busy or self._iterations != (
      orders.save_at or self._iterations
    ):
      self._missed_order = orders.number
      return
    self._followed_order = orders.number
    self._upload.begin(
      gossip_messages.Label(orders.number, self._iterations, is_last=False)
    )

  def _send_variables(self) -> None:
    learned = gossip_means.pack(self.learner.learner.get_learned())
    self._gossip.update_variables(self._caller, learned)

  def _describe(self, own: session_lib.Session) -> dict[str, Any]:
    """Returns the checkpoint state besides learner and replay."""
    return {
      'experiment': own.identity,
      'counts': {
        'steps': self._counts['steps'] + self.total_steps,
        'episodes': self._counts['episodes'] + self.total_episodes,
        'learner_steps': self.learner.version,
        'runs': self._counts['runs'] + 1,
      },
      'elapsed_seconds': own.elapsed_seconds,
    }


class _LearnerCoordinator:
  """Coordinator that adds the node name to log rows, and saves own counts."""

  def __init__(self, coordinator: Any, node: str):
    self._coordinator = coordinator
    self._node = node
    # Returns the run state of this learner's checkpoint.
    self.save: Callable[[], dict[str, Any]] = dict

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a learner row with the node name."""
    self._coordinator.write(label, {'node': self._node, **row})

  def __getattr__(self, name: str) -> Any:
    return getattr(self._coordinator, name)


class _Schedule:
  """Step budget of one actor-learner in a deterministic run.

  Attributes:
    iterations: Iterations so far, which are steps of the environment batch.
    end_at: Iteration after which it ends; None to take its whole share.
    wants_end: Whether the run is to end early.
  """

  def __init__(self, own: session_lib.Session, stop: signals.StopSignal):
    """Starts with the learner's whole share.

    Args:
      own: Session of the learner.
      stop: Signal that asks for an early end.
    """
    self._left = own.experiment.max_steps - own.counts['steps']
    self._stop = stop
    self._is_ending = False
    self.iterations = 0
    self.end_at: int | None = None

  @property
  def wants_end(self) -> bool:
    return self._is_ending or self._stop.is_set()

  @property
  def has_taken_all(self) -> bool:
    """Whether its whole share is taken."""
    return self._left <= 0

  @property
  def is_at_end(self) -> bool:
    """Whether it is at the common last iteration."""
    return self.end_at is not None and self.iterations == self.end_at

  def acquire_steps(self, name: str, wanted: int) -> int:
    """Grants a step of the environment batch, unless it must end."""
    del name
    must_end = self.end_at is not None and self.iterations >= self.end_at
    if must_end or self.has_taken_all:
      return 0
    self._left -= wanted
    return wanted

  def return_steps(self, name: str, unused: int) -> None:
    """Takes back steps of environments that were reset instead."""
    del name
    self._left += unused

  def end(self) -> None:
    """Asks for an early end."""
    self._is_ending = True
