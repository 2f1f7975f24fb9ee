"""Variable client for actors in other processes."""

import time
from collections.abc import Sequence
from concurrent import futures

import tensorflow as tf

from repertory.components import core
from repertory.components.runtime import signals, worker_thread
from repertory.components.variables import variable_client


class RemoteVariableClient(variable_client.VariableClient):
  """Copies variables from a source without blocking the actor.

  Fetches run in a background thread; `update` starts one every `update_period`
  calls and applies the latest result. All names are fetched together, so they
  have the same version.
  """

  def __init__(
    self,
    source: core.VariableSource,
    variables: Sequence[tf.Variable],
    *,
    names: Sequence[str] = ('policy',),
    update_period: int = 1,
    timeout_seconds: float = 600.0,
    stop: signals.StopSignal | None = None,
  ):
    """Starts the thread.

    Args:
      source: Source of `names`, 'learner_steps' and 'max_priority'.
      variables: Targets of the values, in the source's order.
      names: Names of the variables to fetch.
      update_period: Calls of `update` between fetches, at least 1.
      timeout_seconds: Timeout of `update` with `wait`.
      stop: Signal that ends a wait.
    """
    self._source = source
    self._variables = list(variables)
    self._names = [*names, 'learner_steps', 'max_priority']
    self._description = f'variables {", ".join(map(repr, names))}'
    self._update_period = update_period
    self._timeout_seconds = timeout_seconds
    self._stop = stop or signals.StopSignal()
    self._calls_since_fetch = 0
    self._fetch: futures.Future | None = None
    self._thread = worker_thread.WorkerThread('remote_variables')

  def update(self, wait: bool = False) -> None:
    """Applies fetched values, and starts a fetch every `update_period` calls.

    With `wait`, it blocks until values are fetched that are no older than this
    call. It raises a ValueError if shapes differ, and any error of the source.
    """
    self._calls_since_fetch += 1
    if self._fetch is not None and (wait or self._fetch.done()):
      self._finish(self._fetch)  # It began before this call.
    if wait:
      self._finish(self._start_fetch())
    elif self._fetch is None and self._calls_since_fetch >= self._update_period:
      self._start_fetch()

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, within the timeout."""
    self._thread.close(timeout_seconds)

  def _start_fetch(self) -> futures.Future:
    self._calls_since_fetch = 0
    self._fetch = self._thread.submit(
      lambda: (self._source.get_variables(self._names), time.monotonic())
    )
    return self._fetch

  def _finish(self, fetch: futures.Future) -> None:
    """Waits for the running fetch, and applies its values."""
    signals.wait_for(
      lambda seconds: bool(futures.wait([fetch], seconds).done),
      lambda: f'{self._description} from the learner',
      self._timeout_seconds,
      self._stop,
    )
    self._fetch = None
    (*groups, version, max_priority), arrived_at = fetch.result()
    values = [value for group in groups for value in group]
    variable_client.check_alike(
      self._description, [value.shape for value in values], self._variables
    )
    for variable, value in zip(self._variables, values):
      variable.assign(value)
    self._taken = variable_client.Snapshot(
      (), int(version), float(max_priority), arrived_at
    )
