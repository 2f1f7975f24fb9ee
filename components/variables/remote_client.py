"""Variable client for actors in other processes."""

import queue
import threading
import time
from collections.abc import Sequence

import tensorflow as tf

from repertory.components import core
from repertory.components.runtime import signals
from repertory.components.variables import variable_client

# Interval of the thread's checks for its end.
_SLICE_SECONDS = 0.5


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
      update_period: Calls of `update` between fetches.
      timeout_seconds: Timeout of `update` with `wait`.
      stop: Signal that ends a wait and the thread.
    """
    if update_period < 1:
      raise ValueError(
        f'update_period must be at least 1, got {update_period}.'
      )
    self._source = source
    self._variables = list(variables)
    self._names = [*names, 'learner_steps', 'max_priority']
    self._description = f'variables {", ".join(map(repr, names))}'
    self._update_period = update_period
    self._timeout_seconds = timeout_seconds
    self._stop = stop or signals.StopSignal()
    self._calls_since_fetch = 0
    self._version = -1
    self._max_priority = 1.0
    self._fetched_at = self._arrived_at = time.monotonic()
    self._fetched: list = []
    self._error: Exception | None = None
    self._is_fetching = False
    self._closed = False
    self._requests: queue.SimpleQueue[None] = queue.SimpleQueue()
    self._arrived = threading.Event()
    self._thread = threading.Thread(
      target=self._run, name='remote_variables', daemon=True
    )
    self._thread.start()

  @property
  def version(self) -> int:
    return self._version

  @property
  def age_seconds(self) -> float:
    return time.monotonic() - self._fetched_at

  @property
  def max_priority(self) -> float:
    return self._max_priority

  def update(self, wait: bool = False) -> None:
    """Applies fetched values, and starts a fetch every `update_period` calls.

    With `wait`, it blocks until values are fetched that are no older than this
    call. It raises a ValueError if shapes differ, and any error of the source.
    """
    self._calls_since_fetch += 1
    self._take_over()
    if wait:
      if self._is_fetching:  # Started before this call.
        self._wait_for_fetch()
      self._fetch()
      self._wait_for_fetch()
    elif self._calls_since_fetch >= self._update_period:
      self._fetch()

  def close(self, timeout_seconds: float = 5.0) -> None:
    """Ends the thread, within the timeout."""
    self._closed = True
    self._requests.put(None)
    self._thread.join(timeout_seconds)

  def _fetch(self) -> None:
    """Starts a fetch unless one is running."""
    if not self._is_fetching:
      self._calls_since_fetch = 0
      self._is_fetching = True
      self._requests.put(None)

  def _wait_for_fetch(self) -> None:
    signals.wait_for(
      self._arrived.wait,
      lambda: f'{self._description} from the learner',
      self._timeout_seconds,
      self._stop,
    )
    self._take_over()

  def _take_over(self) -> None:
    if not self._arrived.is_set():
      return
    self._arrived.clear()
    self._is_fetching = False
    error, self._error = self._error, None
    if error is not None:
      raise error
    *groups, version, max_priority = self._fetched
    values = [value for group in groups for value in group]
    variable_client.check_alike(
      self._description, [value.shape for value in values], self._variables
    )
    for variable, value in zip(self._variables, values):
      variable.assign(value)
    self._version = int(version)
    self._max_priority = float(max_priority)
    self._fetched_at = self._arrived_at

  def _run(self) -> None:
    while not (self._closed or self._stop.is_set()):
      try:
        self._requests.get(timeout=_SLICE_SECONDS)
      except queue.Empty:
        continue
      if self._closed:
        return
      try:
        self._fetched = self._source.get_variables(self._names)
      except Exception as error:  # `update` raises it in the actor's thread.
        self._error = error
      self._arrived_at = time.monotonic()
      self._arrived.set()
