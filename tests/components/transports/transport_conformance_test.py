"""Tests that transports pass all checks, and that each check can fail."""

import contextlib
import dataclasses
import os
import types
from collections.abc import Mapping

import pytest
import tensorflow as tf

from repertory.components import replay, testing, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local


@contextlib.contextmanager
def _serve(described, directory, timeout_seconds, stop):
  """Yields a connection to a server of the tables."""
  server = replay.make_server(described.tables, checkpoint_directory=directory)
  try:
    yield replay.Connection(f'localhost:{server.port}', timeout_seconds, stop)
  finally:
    server.stop()


class _ReverbTransports(testing.TransportConformance):
  transport_class: type[transports.ReverbTransport] = transports.ReverbTransport
  parts: transports.TransportParts = transports.TransportParts()

  @contextlib.contextmanager
  def serve(self, described, directory, timeout_seconds, stop):
    with _serve(described, directory, timeout_seconds, stop) as connection:
      yield self.transport_class(connection, described, self.parts, directory)


class TestReverbTransport(_ReverbTransports):
  pass


class TestInProcessTransport(testing.TransportConformance):
  test_limit_of_pending_items = None  # Items are inserted at once.

  @contextlib.contextmanager
  def serve(self, described, directory, timeout_seconds, stop):
    yield transports.InProcessTransport(
      described,
      transports.TransportParts(),
      seed=0,
      place=local.WaitPolicy(timeout_seconds, stop),
      checkpoint_directory=directory,
    )


class _WithoutSnapshots(_ReverbTransports):
  """The server restores nothing."""

  def serve(self, described, directory, timeout_seconds, stop):
    elsewhere = os.path.join(directory, 'elsewhere')
    return super().serve(described, elsewhere, timeout_seconds, stop)


class _Shuffling(transports.TransportParts):
  """Pairs each item with the successor of another one."""

  def make_dataset(self, experience, connection):
    batches = super().make_dataset(experience, connection)
    get_next = batches._get_next

    def shuffle():
      sample = get_next()
      after = tf.roll(sample.data.next_observation, 1, 0)
      data = sample.data._replace(next_observation=after)
      return sample._replace(data=data)

    batches._get_next = shuffle
    return batches


class _WithoutLeast(transports.TransportParts):
  def make_priority_updater(self, experience, connection):
    experience = dataclasses.replace(experience, min_priority=1e-9)
    return super().make_priority_updater(experience, connection)


class _Forgetting(transports.ReverbTransport):
  """Creates adders without one of the settings."""

  forgotten: Mapping = types.MappingProxyType({})

  def make_adder(self, batch_size, **settings):
    return super().make_adder(batch_size, **{**settings, **self.forgotten})


class _ForgetsPriority(_Forgetting):
  forgotten = types.MappingProxyType({'priority': lambda: 1.0})


class _ForgetsVersion(_Forgetting):
  forgotten = types.MappingProxyType({'version': lambda: 0})


class _TakesOne(transports.ReverbTransport):
  """Allows only one adder."""

  is_taken = False

  def make_adder(self, batch_size, **settings):
    adder = super().make_adder(batch_size, **settings)
    if self.is_taken:
      adder.put = lambda *step: None
    self.is_taken = True
    return adder


class _Impatient(transports.ReverbTransport):
  def make_learner_side(self):
    end = super().make_learner_side()
    end.wait_for_items = lambda: None
    return end


def _with(transport_class=transports.ReverbTransport, parts=None):
  checks = _ReverbTransports()
  checks.transport_class = transport_class
  checks.parts = parts or transports.TransportParts()
  return checks


@pytest.mark.parametrize(
  ('checks', 'check'),
  [
    (_with(parts=_Shuffling()), 'items_come_out_whole'),
    (_with(_TakesOne), 'adders_share_the_transport'),
    (_with(_ForgetsVersion), 'items_have_the_version_that_acted'),
    (_with(_Impatient), 'waits_for_enough_items'),
    (_with(_ForgetsPriority), 'new_items_have_the_given_priority'),
    (_with(parts=_WithoutLeast()), 'priorities_are_optional'),
    (_WithoutSnapshots(), 'snapshot_is_restored'),
  ],
)
def test_finds_wrong_transports(checks, check):
  checks.deadline_seconds = 2.0
  errors = (AssertionError, checkpointing.CheckpointError, StopIteration)
  with pytest.raises(errors):
    getattr(checks, f'test_{check}')()
