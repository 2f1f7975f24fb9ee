"""Sessions of tests."""

import contextlib

from repertory.launch.opening import directory, plan


@contextlib.contextmanager
def open_session(experiment, topology='distributed', **settings):
  """Yields the session of an opened run; `settings` are of `open_run`."""
  with directory.open_run(
    plan.make_plan(experiment, topology), **settings
  ) as run:
    yield run.make_session()
