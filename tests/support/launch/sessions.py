"""Sessions of tests."""

from repertory.launch.opening import directory, plan


def open_session(experiment, topology='distributed', **settings):
  """Yields the session of an opened run; `settings` are of `open_run`."""
  return directory.open_run(plan.make_plan(experiment, topology), **settings)
