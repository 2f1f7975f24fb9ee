"""In-process tables for tests, and their items."""

import numpy as np

from repertory.components import replay
from repertory.components.replay import local
from support.replay import replay_fixture

SIGNATURE = replay_fixture.SIGNATURE


def make_uniform(max_size=1000, rate_limit=replay_fixture.NO_LIMIT):
  """Describes a table of numbers that is sampled uniformly."""
  return replay.uniform(SIGNATURE, max_size, rate_limit)


def make_table(description=None, seed=0, num_turns=None):
  """Makes a table of numbers, sampled uniformly by default."""
  return local.Table(description or make_uniform(), seed, num_turns)


def open_writer(table, place=None, **settings):
  """Opens a writer to a table."""
  place = place or local.WaitPolicy(replay_fixture.DEADLINE_SECONDS)
  settings.setdefault('max_pending_items', 10**9)
  writer = local.LocalWriter(table, place, **settings)
  writer.open(1)
  return writer


def insert(table, values, priorities=None):
  """Inserts numbers one by one; fails if an insert blocks."""
  priorities = iter(priorities or [1.0] * len(values))
  writer = open_writer(table, priority=lambda: next(priorities))
  for value in values:
    writer.put([np.array([value])])
  assert not writer.is_ahead()
  writer.close()


def sample(table, num_samples):
  """Samples numbers; fails if the table has none."""
  drawn = table.sample(num_samples, 0)
  assert drawn is not None
  return drawn


def values(drawn):
  """Returns the numbers of a sample."""
  return drawn.data['x'].tolist()
