"""Replay tables, their rate limits, and the server that holds them."""

from repertory.components.replay.connection import Connection
from repertory.components.replay.priorities import PriorityUpdater
from repertory.components.replay.rate_limiters import RateLimit
from repertory.components.replay.server import TableStatus
from repertory.components.replay.server import make_server
from repertory.components.replay.server import table_status
from repertory.components.replay.tables import DEFAULT_TABLE
from repertory.components.replay.tables import Table
from repertory.components.replay.tables import prioritized
from repertory.components.replay.tables import queue
from repertory.components.replay.tables import uniform

__all__ = [
  'DEFAULT_TABLE',
  'Connection',
  'PriorityUpdater',
  'RateLimit',
  'Table',
  'TableStatus',
  'make_server',
  'prioritized',
  'queue',
  'table_status',
  'uniform',
]
