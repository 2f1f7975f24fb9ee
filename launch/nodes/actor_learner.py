"""Actor-learner: one of several nodes that each act and learn, and gossip."""

import contextlib
import dataclasses
import os
import pickle
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from repertory.components import gossip, replay, transports, variables
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import signals
from repertory.launch.coordination import reports, statuses
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import (
  actor,
  checkpoints,
  joint_checkpoints,
  learner,
  node,
)
from repertory.launch.nodes import gossip as gossip_node_lib

# File of a packed checkpoint, in the checkpoint directory.
_ARCHIVE = '.archive'


class GossipLearner(learner.LearnerNode):
  """Learner that mixes parameters with its neighbors between updates.

  Its checkpoints are sent to the gossip node, and removed when it closes.
  """

  participant: gossip.Participant | None = None

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    transport: transports.Transport,
    start: gossip_node_lib.LearnerStart,
    settings: Any,
    gossip_node: Any,
  ):
    """Makes the learner; its checkpoint, if any, has been unpacked already."""
    context.closing.callback(self._remove_checkpoints)
    super().__init__(context, session, transport)
    self._mix_period = settings.mix_period
    if start.whole:
      steps = np.asarray(start.counts['learner_steps'], np.int64)
      whole = {**pickle.loads(start.whole), 'learner_steps': steps}
      self.learner.restore(whole)
      self._end.begin(self.version)
    if start.learned:
      self.learner.begin_with(pickle.loads(start.learned))
    self._gossip = gossip_node
    self._is_closed = False
    self._checkpoints.on_written = self._send
    if settings.num_learners > 1:
      self.participant = gossip.Participant(
        self.learner.get_learned(),
        settings.graph,
        settings.learners,
        find=context.coordinator.address_of,
        caller=context.caller,
        share=settings.mix_weight,
        interface=context.interface,
      )
      context.closing.callback(self.participant.close)
    context.closing.callback(setattr, self, '_is_closed', True)

  def step(self) -> None:
    before, period = self.version, self._mix_period
    super().step()
    if self.participant is None or before // period == self.version // period:
      return
    mixed = self.participant.exchange(self.version, self.learner.get_learned())
    if mixed is not None:
      self.learner.begin_with(mixed)

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of each of its tables."""
    return self._end.statuses()

  def finish(self) -> None:
    """Writes the last log row, and sends the final checkpoint."""
    self._logger.flush()
    self.checkpoint()

  def _send(self, checkpoint: str) -> None:
    """Sends a checkpoint to the gossip node; called in the writer thread."""
    path = os.path.join(self._session.checkpoint_directory, _ARCHIVE)
    joint_checkpoints.send(
      checkpoint,
      path,
      # The gossip node reports itself if it could not write a chunk.
      lambda *chunk: not self._is_closed and self._gossip.deposit(*chunk),
    )

  def _remove_checkpoints(self) -> None:
    directory = self._session.experiment.directory
    shutil.rmtree(self._session.checkpoint_directory, ignore_errors=True)
    with contextlib.suppress(OSError):  # It has other files.
      os.removedirs(directory)


class ActorLearnerNode(actor.ActorNode):
  """Steps its share of the environments, and learns as batches become due."""

  def __init__(
    self,
    context: node.Context,
    own: session_lib.Session,
    index: int,
    settings: Any,
    gossip_node: Any,
  ):
    """Makes actor and learner, and restores their state.

    Args:
      own: Its own session, as of a new run.
      settings: The topology, `topologies.gossip.Gossip`.
      gossip_node: Authenticated client of the gossip node.
    """
    self._gossip = gossip_node
    context.report_start('fetching its initial state')
    own, start = self._begin(own)
    self._own = own
    self._reported_at = 0.0
    self._messages = statuses.Rates()
    with context.initializing():
      transport = own.make_in_process_transport(context.stop)
      self.learner = GossipLearner(
        dataclasses.replace(
          context, coordinator=_LearnerCoordinator(context, self)
        ),
        own,
        transport,
        start,
        settings,
        gossip_node,
      )
      size = own.experiment.num_environments
      super().__init__(
        context,
        own,
        range(index * size, (index + 1) * size),
        network=self.learner.network,
        variable_client=variables.SharedVariableClient(self.learner),
        transport=transport,
        # The learner flushes all items before it samples.
        max_pending_items=sys.maxsize,
      )

  @property
  def description(self):
    described = {**self.learner.description, **super().description}
    participant = self.learner.participant
    if participant is not None:
      described['address'] = participant.address
    return described

  def step(self) -> int:
    num_steps = super().step()
    self.learner.catch_up(self.num_items, self.flush)
    self.learner.checkpoint_if_due()
    return num_steps

  def run(self) -> None:
    with contextlib.suppress(signals.Stopped):
      super().run()
    self._report_learner()
    self.learner.finish()

  def report(self) -> reports.HeartbeatReply:
    now = time.monotonic()
    if now - self._reported_at > gossip_node_lib.PERIOD_SECONDS:
      self._reported_at = now
      self._report_learner()
    return super().report()

  def describe_checkpoint(self) -> dict[str, Any]:
    """Returns the checkpoint state besides learner and replay."""
    before = self._own.counts
    return {
      'experiment': self._own.identity,
      'counts': {
        'steps': before['steps'] + self.total_steps,
        'episodes': before['episodes'] + self.total_episodes,
        'learner_steps': self.learner.version,
        'runs': before['runs'] + 1,
      },
      'elapsed_seconds': self._own.elapsed_seconds,
    }

  def _begin(
    self, own: session_lib.Session
  ) -> tuple[session_lib.Session, gossip_node_lib.LearnerStart]:
    """Returns session and initial state, after fetching a checkpoint."""
    shutil.rmtree(own.experiment.directory, ignore_errors=True)
    start = self._gossip.begin()
    if start.has_checkpoint:
      counts = {**self._fetch_checkpoint(own), 'runs': own.counts['runs']}
      own = dataclasses.replace(own, counts=counts, is_resumed=True)
    elif start.whole:
      counts = {**own.counts, **start.counts}
      own = dataclasses.replace(own, counts=counts)
    return own, start

  def _fetch_checkpoint(self, own: session_lib.Session) -> Mapping[str, int]:
    """Unpacks its checkpoint and tables; returns the saved counts."""
    directory = own.checkpoint_directory
    os.makedirs(directory)
    path = os.path.join(directory, _ARCHIVE)
    with open(path, 'wb') as file:
      while chunk := self._gossip.read_checkpoint(file.tell()):
        file.write(chunk)
    joint_checkpoints.unpack(path, directory)
    os.remove(path)
    checkpoint = checkpoints.load(directory, check_replay=True)
    checkpointing.prepare_replay(checkpoint.replay_path, own.replay_directory)
    return checkpoint.state['counts']

  def _report_learner(self) -> None:
    """Reports to the gossip node, and writes a log row."""
    distance = self._gossip.exchange(
      self.learner.version,
      self.learner.statuses(),
      pickle.dumps(self.learner.learner.get_learned()),
    )
    one = self.learner.participant
    (rate,) = self._messages.measure(one.num_messages if one else 0)
    row = {
      'node': self.name,
      'version': self.learner.version,
      'episode_return': self.mean_return,
      'distance': distance,
      'messages_per_second': rate,
      'age_seconds': one.age_seconds if one else None,
      'age_steps': one.age_steps if one else None,
    }
    self._coordinator.write(reports.GOSSIP, row)


class _LearnerCoordinator:
  """Coordinator that adds the node name to log rows, and saves own counts."""

  def __init__(self, context: node.Context, actor_learner: ActorLearnerNode):
    self._coordinator = context.coordinator
    self._node = context.name
    self.save = actor_learner.describe_checkpoint

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs a learner row with the node name."""
    self._coordinator.write(label, {'node': self._node, **row})

  def __getattr__(self, name: str) -> Any:
    return getattr(self._coordinator, name)
