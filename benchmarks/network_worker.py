"""Actor process of `network_inference.py`.

Each line on its standard input has the number of lanes into which to divide its
environments, and the seconds for which to step them. It prints the steps per
second.
"""

import json
import sys
import time

import acting_worker


def main() -> None:
  """Connects to the servers given by the argument, a JSON object."""
  settings = json.loads(sys.argv[1])
  ids = settings['environment_ids']
  connections = {}
  for number, address in settings['addresses'].items():
    size = int(number)
    connections[size] = [
      acting_worker.Acting(
        settings, ids[i::size], address, settings['step_seconds'] / size
      )
      for i in range(size)
    ]
  print('ready', flush=True)
  for line in sys.stdin:
    size, seconds = json.loads(line)
    print(_run(connections[size], seconds), flush=True)


def _run(connections: list[acting_worker.Acting], seconds: float) -> float:
  """Steps all lanes round-robin; returns steps per second."""
  steps, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < seconds:
    for lane in connections:
      steps += lane.step()
  return steps / elapsed


if __name__ == '__main__':
  main()
