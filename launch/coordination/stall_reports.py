"""What is told when a run gets no further."""

import os
from collections.abc import Mapping

from repertory.components import loggers
from repertory.launch import failures
from repertory.launch.coordination import kinds, reports
from repertory.launch.runs import session as session_lib

_FILE = 'stall.txt'

_SIDES = {
  'insert': 'inserts wait: acting is held back until the learner has sampled',
  'sample': 'samples wait: learning is held back until there is more to sample',
  '': 'neither side waits',
}


def write(
  seen: reports.Observation,
  nodes: Mapping[str, str],
  stacks: Mapping[str, str],
  session: session_lib.Session,
) -> failures.Failure:
  """Writes a report beside the logs, if the disk takes it.

  Args:
    seen: How the run is.
    nodes: By name, how each node does.
    stacks: By name, where the threads of each node are.

  Returns:
    The failure of whoever got on longest ago, with the report but for the
    stacks.
  """
  text = describe(seen, nodes, session.tables)
  path = os.path.join(session.log_directory, _FILE)
  try:
    os.makedirs(session.log_directory, exist_ok=True)  # It may be gone.
    with open(path, 'w') as file:
      file.write(text)
      for name, stack in stacks.items():
        file.write(f'\nThreads of {name}:\n{stack}')
  except OSError as error:
    path += f', which could not be written ({type(error).__name__}: {error})'
  return failures.Failure(
    seen.laggard or kinds.COORDINATOR.name,
    f'{text}Where each thread is: {path}',
  )


def describe(
  seen: reports.Observation, nodes: Mapping[str, str], tables
) -> str:
  """Returns the report in lines: what stands still, and who waits for whom."""
  lines = [
    f'The run has got no further for {seen.idle_seconds:.0f} seconds: no '
    'environment step, no update, no evaluation.'
  ]
  limits = {table.name: table.rate_limit for table in tables}
  for table in seen.status.tables:
    limit = limits[table.name]
    lines += [
      _describe_table(table),
      f'  It is limited by {limit or "its size"}.',
    ]
  for server in seen.status.inference:
    lines.append(
      f'{server.name}: {server.rows_per_second:.0f} rows/s, adders took or '
      f'waited {server.adding_share:.0%} of the time.'
    )
  lines += [f'{name}: {text}.' for name, text in nodes.items()]
  return '\n'.join(lines) + '\n'


def _describe_table(table: loggers.TableStatus) -> str:
  return (
    f"Table '{table.name}' holds {table.size} of at most {table.max_size} "
    f'items; {_SIDES[table.blocked]}.'
  )
