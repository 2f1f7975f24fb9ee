"""Latency of RPCs: Courier or gRPC.

    .venv/bin/python benchmarks/calls.py

This process calls a server in another process: with a number that is returned,
for a reply of 4 MB, and with the number from eight threads at once. Both
implementations alternate, round after round. Processor time is the sum of
caller and server. Other load can only slow them down, so the fastest of five
consecutive rounds counts, for each; the table shows the median of those, with
minimum and maximum.
"""

import collections
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import figures
import rich.console
import rich.table
from absl import app, flags

from repertory.launch.launchers import calls, rpc
from repertory.launch.platform import ports

_ROUNDS = flags.DEFINE_integer('rounds', 25, 'Rounds of calls.')
_SECONDS = flags.DEFINE_float('seconds', 0.3, 'Duration per measurement.')
_SERVE = flags.DEFINE_string('serve', '', 'Implementation to serve; internal.')

_WAYS = (rpc.COURIER, rpc.GRPC)
_REPLY_BYTES = 4 << 20
_CALLERS = 8
_WAIT_SECONDS = 60.0
_OF_ROUNDS = 5  # The fastest counts.
_TOKEN = 'token'

Figures = Mapping[str, Mapping[str, Sequence[float]]]


def _serve(way: str) -> None:
  """Serves until the standard input is closed; prints the address."""
  library, reply = rpc.get(way), os.urandom(_REPLY_BYTES)
  served = {'same': lambda number: number, 'reply': lambda: reply}
  with (
    ports.held() as port,
    library.serving(port, served, num_threads=2 * _CALLERS, token=_TOKEN),
  ):
    print(port, flush=True)
    sys.stdin.read()


@contextlib.contextmanager
def _client(way: str) -> Iterator[tuple[Any, int]]:
  """Yields a client of a server in another process, and its process id."""
  process: Any = subprocess.Popen(
    [sys.executable, __file__, f'--serve={way}'],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )
  with process:
    port = int(process.stdout.readline())
    client = rpc.get(way).make_client(
      f'localhost:{port}', _WAIT_SECONDS, _TOKEN
    )
    calls.wait_for_server(client)
    client.reply()
    yield client, process.pid
    process.stdin.close()


def _repeat(call: Callable[[], Any]) -> int:
  """Calls repeatedly for some time; returns the number of calls."""
  count, end = 0, time.perf_counter() + _SECONDS.value
  while time.perf_counter() < end:
    call()
    count += 1
  return count


def _measure_calls(client: Any, pid: int) -> dict[str, float]:
  """Returns the figures of one round."""

  def call():
    return client.same(1)

  def measure(make_calls: Callable[[], int]) -> tuple[float, float]:
    """Returns the time and the processor time of a call, in µs."""
    used = time.process_time() + figures.processor_seconds(pid)
    start = time.perf_counter()
    count = make_calls()
    elapsed = time.perf_counter() - start
    used = time.process_time() + figures.processor_seconds(pid) - used
    return 1e6 * elapsed / count, 1e6 * used / count

  with futures.ThreadPoolExecutor(_CALLERS) as callers:
    cases = {
      'a small call': lambda: _repeat(call),
      'a small future': lambda: _repeat(
        lambda: client.futures.same(1).result()
      ),
      'a reply of 4 MB': lambda: _repeat(client.reply),
      f'a small call of {_CALLERS} callers': lambda: sum(
        callers.map(lambda _: _repeat(call), range(_CALLERS))
      ),
    }
    found = {}
    for what, make_calls in cases.items():
      elapsed, used = measure(make_calls)
      found[f'µs for {what}'], found[f'CPU µs for {what}'] = elapsed, used
  return found


def measure() -> Figures:
  """Returns the figures of each round, by quantity and implementation."""
  found: Any = collections.defaultdict(lambda: collections.defaultdict(list))
  with contextlib.ExitStack() as stack:
    clients = {way: stack.enter_context(_client(way)) for way in _WAYS}
    for _ in range(_ROUNDS.value):
      for way, client in clients.items():
        for what, figure in _measure_calls(*client).items():
          found[what][way].append(figure)
  return found


def _fastest(rounds: Sequence[float]) -> list[float]:
  return [
    min(rounds[i : i + _OF_ROUNDS]) for i in range(0, len(rounds), _OF_ROUNDS)
  ]


def print_table(found: Figures) -> None:
  """Prints the results."""
  table = rich.table.Table()
  table.add_column('')
  for column in (*_WAYS, 'gRPC / Courier'):
    table.add_column(column, justify='right')
  for what, figures_of in found.items():
    courier, grpc = (_fastest(figures_of[way]) for way in _WAYS)
    ratios = [g / c for g, c in zip(grpc, courier)]
    table.add_row(
      what,
      figures.spread(courier, 0),
      figures.spread(grpc, 0),
      figures.spread(ratios, 2),
    )
  rich.console.Console(width=120).print(table)


def main(_) -> None:
  """Serves, or measures and prints a table."""
  if _SERVE.value:
    _serve(_SERVE.value)
  else:
    print_table(measure())


if __name__ == '__main__':
  app.run(main)
