"""Stall reports, written when a run makes no progress."""

import os
from collections.abc import Mapping

from repertory.launch.coordination import kinds, reports
from repertory.launch.experiments import failures
from repertory.launch.experiments import session as session_lib

_SIDES = {
  'insert': 'inserts wait: the rate limiter blocks actors until samples come',
  'sample': 'samples wait: the rate limiter blocks learners until inserts come',
  '': 'neither side waits',
}


def write(
  seen: reports.Observation,
  nodes: Mapping[str, str],
  stacks: Mapping[str, str],
  session: session_lib.Session,
) -> failures.Failure:
  """Writes a stall report beside the logs, if the disk has room.

  Returns a failure of the slowest node, with the report without the stacks.
  """
  limits = {table.name: table.rate_limit for table in session.tables}
  lines = [
    f'The run has made no progress for {seen.idle_seconds:.0f} seconds: no '
    'environment step, no learner step, no evaluation.',
    *(
      f"Table '{table.name}' holds {table.size} of at most {table.max_size} "
      f'items; {_SIDES[table.blocked]}. It is limited by '
      f'{limits[table.name] or "its size"}.'
      for table in seen.status.tables
    ),
    *(f'{name}: {text}.' for name, text in nodes.items()),
  ]
  text = '\n'.join(lines) + '\n'
  path = os.path.join(session.log_directory, 'stall.txt')
  try:
    os.makedirs(session.log_directory, exist_ok=True)  # It may be gone.
    with open(path, 'w') as file:
      file.write(text)
      for name, stack in stacks.items():
        file.write(f'\nThreads of {name}:\n{stack}')
  except OSError as error:
    path += f', which could not be written ({type(error).__name__}: {error})'
  return failures.Failure(
    seen.slowest or kinds.COORDINATOR.name,
    f'{text}Stack traces of all threads: {path}',
  )
