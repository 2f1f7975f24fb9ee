"""Replay servers: that of this package beside Reverb.

    .venv/bin/python benchmarks/replay_service.py

Each server has a process, and each client; the implementations alternate, round
after round. Rates are per second of processor time, of the server and all its
clients; the table shows the median of the rounds, with minimum and maximum.
Images are like those of a game: moving rectangles on a plain background. The
last row is the server's memory for image transitions, scaled to a million.
"""

import collections
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import figures
import numpy as np
import psutil
import rich.console
import rich.table
import tensorflow as tf
from absl import app, flags

from repertory.components import replay, types
from repertory.components.replay import served

_ROUNDS = flags.DEFINE_integer('rounds', 5, 'Rounds.')
_SECONDS = flags.DEFINE_float('seconds', 1.0, 'Duration per measurement.')
_ITEMS = flags.DEFINE_integer('items', 5_000, 'Items of tables to sample.')
_SERVE = flags.DEFINE_string('serve', '', 'Implementation to serve; internal.')
_CONNECT = flags.DEFINE_string('connect', '', 'Server to use; internal.')

_SERVED, _REVERB = 'served', 'reverb'
_IMAGE = (84, 84, 4)
_MOVES = 64


def _transitions(shape: tuple[int, ...], dtype: tf.DType) -> types.Transition:
  observation = tf.TensorSpec(shape, dtype, 'observation')
  return types.Transition(
    observation=observation,
    action=tf.TensorSpec([], tf.int32, 'action'),
    reward=tf.TensorSpec([], tf.float32, 'reward'),
    discount=tf.TensorSpec([], tf.float32, 'discount'),
    next_observation=observation,
    extras=(),
  )


def _tables() -> Mapping[str, replay.TableSpec]:
  small = _transitions((8,), tf.float32)
  images = _transitions(_IMAGE, tf.uint8)
  sequences = {
    'observation': tf.TensorSpec([20, 84, 84], tf.uint8),
    'action': tf.TensorSpec([20], tf.int32),
    'reward': tf.TensorSpec([20], tf.float32),
  }
  free = replay.UNLIMITED
  tables = [
    replay.uniform(small, 100_000, free, name='small'),
    replay.uniform(small, 100_000, free, name='written'),
    replay.uniform(images, 100_000, free, name='images'),
    replay.uniform(sequences, 2_000, free, name='sequences'),
    replay.prioritized(small, 100_000, free, 0.6),
  ]
  return {table.name: table for table in tables}


def _serve(way: str) -> None:
  """Serves until the standard input is closed; prints the address."""
  tables = list(_tables().values())
  server: Any
  if way == _SERVED:
    server = served.ReplayServer(tables, seed=0)
    address = server.address
  else:
    server = replay.make_server(tables)
    address = f'localhost:{server.port}'
  print(address, flush=True)
  sys.stdin.read()
  server.stop()


class _Client:
  """Writers and batches of a server, for one measurement after the other."""

  def __init__(self, way: str, address: str):
    self._tables = _tables()
    self._is_served = way == _SERVED
    self._connection: Any = (
      served.ServerConnection(address)
      if self._is_served
      else replay.Connection(address)
    )
    self._random = np.random.default_rng(0)
    frames = [_draw_frame(move) for move in range(_MOVES)]
    self._images = [
      np.stack([frames[(move + k) % _MOVES] for k in range(4)], -1)[np.newaxis]
      for move in range(_MOVES)
    ]
    self._sequences = [
      np.stack([frames[(move + k) % _MOVES] for k in range(20)])[np.newaxis]
      for move in range(_MOVES)
    ]

  def run(self, case: str, repeat: Callable[[Callable[[], int]], int]) -> int:
    """Runs a case repeatedly; returns the number of items or batches."""
    kind, name = case.split()
    with contextlib.ExitStack() as stack:
      step = getattr(self, f'_{kind}')(name, stack)
      return repeat(step)

  def _insert(self, name: str, stack: contextlib.ExitStack):
    table = self._tables[name]
    kind = served.ServedWriter if self._is_served else replay.ReverbWriter
    writer = kind(self._connection, table, max_pending_items=4)
    writer.open(4)
    stack.callback(writer.close)
    leaves = self._make_leaves(name)
    kept: list[Any] = []
    count = 0

    def step() -> int:
      nonlocal count
      count += 1
      item = list(leaves)
      if name == 'images':
        image = self._images[count % _MOVES]
        kept.append(writer.keep({0: image})[0])
        del kept[:-2]
        item[0], item[4] = kept[0], kept[-1]
      elif name == 'sequences':
        item[1] = self._sequences[count % _MOVES]
      writer.put(item)
      if writer.is_ahead():
        writer.wait()
      return 1

    return step

  def _make_leaves(self, name: str) -> list[Any]:
    layout = self._tables[name].packing
    return [
      np.ones((1, *shape), dtype)
      for shape, dtype in zip(layout.shapes, layout.dtypes)
    ]

  def _sample(self, name: str, stack: contextlib.ExitStack):
    batches = self._make_batches(name, stack)

    def step() -> int:
      next(batches)
      return 1

    return step

  def _update(self, name: str, stack: contextlib.ExitStack):
    batches = self._make_batches(name, stack)
    priorities = self._make_priorities(name, stack)

    def step() -> int:
      keys = np.asarray(next(batches).keys)
      priorities.update(keys, self._random.random(len(keys)))
      return 1

    return step

  def _wait(self, name: str, stack: contextlib.ExitStack):
    priorities = self._make_priorities(name, stack)
    keys = np.arange(256, dtype=np.uint64)

    def step() -> int:
      priorities.update(keys, self._random.random(len(keys)))
      priorities.flush()
      return 1

    return step

  def _make_batches(self, name: str, stack: contextlib.ExitStack):
    kind = served.ServedBatches if self._is_served else replay.ReplayDataset
    size = 32 if name in ('images', 'sequences') else 256
    batches = kind(self._connection, self._tables[name], size)
    stack.callback(batches.close)
    next(batches)
    return batches

  def _make_priorities(self, name: str, stack: contextlib.ExitStack):
    priorities: Any
    if self._is_served:
      table = self._tables[name]
      priorities = served.ServedPriorities(self._connection, table, 1e-3)
    else:
      priorities = replay.PriorityUpdater(self._connection, name, 1e-3)
    stack.callback(priorities.close)
    return priorities


def _draw_frame(move: int) -> np.ndarray:
  """Returns a frame of a simple game."""
  frame = np.full((84, 84), 87, np.uint8)
  frame[:8] = 144
  frame[14:18, ::7] = 200
  frame[60:68, 8 + move % 60 : 20 + move % 60] = 236
  frame[20 + move % 40, 10 + move % 50] = 255
  frame[30 + (3 * move) % 30 : 34 + (3 * move) % 30, 40:46] = 110
  return frame


def _work(connect: str) -> None:
  """Runs the cases that come from the standard input."""
  way, address = connect.split('@')
  client = _Client(way, address)
  for line in sys.stdin:
    case, amount = line.rsplit(maxsplit=1)

    def repeat(step: Callable[[], int], amount=float(amount)) -> int:
      """Repeats a number of times, or for less than a number of seconds."""
      count, end = 0, time.perf_counter() + amount
      while count < amount if amount >= 100 else time.perf_counter() < end:
        count += step()
      return count

    start = time.perf_counter()
    print(client.run(case, repeat), time.perf_counter() - start, flush=True)


class _Processes:
  """A server, and its clients."""

  def __init__(self, way: str, num_clients: int, stack: contextlib.ExitStack):
    self.server = _start(f'--serve={way}', stack)
    address = self.server.stdout.readline().strip()
    connect = f'--connect={way}@{address}'
    self.clients = [_start(connect, stack) for _ in range(num_clients)]

  def run(
    self, case: str, amount: float, num_clients: int = 1
  ) -> tuple[float, float, float]:
    """Returns the count, and processor seconds of server and clients."""
    clients = self.clients[:num_clients]
    pids = [self.server.pid, *(client.pid for client in clients)]
    before = [figures.processor_seconds(pid) for pid in pids]
    for client in clients:
      client.stdin.write(f'{case} {amount}\n')
      client.stdin.flush()
    counts = [float(client.stdout.readline().split()[0]) for client in clients]
    server, *others = (
      figures.processor_seconds(pid) - used for pid, used in zip(pids, before)
    )
    return sum(counts), server, sum(others)

  def server_bytes(self) -> int:
    """Returns the memory of the server."""
    return psutil.Process(self.server.pid).memory_info().rss


def _start(flag: str, stack: contextlib.ExitStack) -> Any:
  process: Any = subprocess.Popen(
    [sys.executable, __file__, flag, f'--seconds={_SECONDS.value}'],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
    env={**os.environ, 'CUDA_VISIBLE_DEVICES': ''},
  )
  stack.enter_context(process)
  stack.callback(process.stdin.close)
  return process


# Title, case, number of clients, and the unit.
_CASES = (
  ('inserts of small transitions', 'insert written', 1),
  ('the same, 4 writers', 'insert written', 4),
  ('inserts of image transitions', 'insert images', 1),
  ('inserts of sequences of 20 images', 'insert sequences', 1),
  ('batches of 256 small transitions', 'sample small', 1),
  ('batches of 32 image transitions', 'sample images', 1),
  ('batches of 32 sequences', 'sample sequences', 1),
  ('prioritized batches of 256, with updates', 'update replay', 1),
  ('updates of 256 priorities, each awaited', 'wait replay', 1),
)


def _measure() -> tuple[Mapping[str, Any], Mapping[str, float]]:
  """Returns rates of each round, by title and implementation; and memory."""
  found: Any = collections.defaultdict(lambda: collections.defaultdict(list))
  memory = {}
  with contextlib.ExitStack() as stack:
    processes = {way: _Processes(way, 4, stack) for way in (_REVERB, _SERVED)}
    for way, one in processes.items():
      for name in ('small', 'sequences', 'replay'):
        one.run(f'insert {name}', _ITEMS.value)
      before = one.server_bytes()
      one.run('insert images', _ITEMS.value)
      memory[way] = (one.server_bytes() - before) / _ITEMS.value
    for _ in range(_ROUNDS.value):
      for title, case, num_clients in _CASES:
        for way, one in processes.items():
          count, server, client = one.run(case, _SECONDS.value, num_clients)
          found[title][way].append((count, server, client))
  return found, memory


def _print_table(found: Mapping[str, Any], memory: Mapping[str, float]) -> None:
  table = rich.table.Table()
  table.add_column('per second of processor time')
  for column in (
    'Reverb', 'ours', 'ours / Reverb', 'server: µs each', 'clients: µs each'
  ):  # fmt: skip
    table.add_column(column, justify='right')
  for title, by_way in found.items():
    reverb, ours = (_rates(by_way[way]) for way in (_REVERB, _SERVED))
    ratios = [mine / theirs for mine, theirs in zip(ours, reverb)]
    table.add_row(
      title,
      figures.spread(reverb, 0),
      figures.spread(ours, 0),
      figures.spread(ratios, 2),
      *(
        ' / '.join(
          figures.spread(
            [1e6 * one[k] / one[0] for one in by_way[way]], 0
          ).split(' ')[0]
          for way in (_REVERB, _SERVED)
        )
        for k in (1, 2)
      ),
    )
  table.add_row(
    'GB of a million image transitions',
    f'{memory[_REVERB] / 1e3:.1f}',
    f'{memory[_SERVED] / 1e3:.1f}',
    f'{memory[_SERVED] / memory[_REVERB]:.2f}',
  )
  rich.console.Console(width=140).print(table)


def _rates(rounds: Sequence[tuple[float, float, float]]) -> list[float]:
  return [count / (server + client) for count, server, client in rounds]


def main(_) -> None:
  """Serves, works for a server, or measures and prints a table."""
  if _SERVE.value:
    _serve(_SERVE.value)
  elif _CONNECT.value:
    _work(_CONNECT.value)
  else:
    _print_table(*_measure())


if __name__ == '__main__':
  app.run(main)
