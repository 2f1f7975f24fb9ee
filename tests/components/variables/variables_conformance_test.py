"""Tests that variable clients pass all checks, and that each check can fail."""

import threading
import time

import pytest

from repertory.components import testing, variables


class TestShared(testing.VariableClientConformance):
  is_shared = True

  def make_variable_client(self, learner, variables_in_use, stop):
    return variables.SharedVariableClient(learner)


class TestLocal(testing.VariableClientConformance):
  def make_variable_client(self, learner, variables_in_use, stop):
    publisher = variables.Publisher(learner.variables)
    learner.publish = publisher.publish
    return variables.LocalVariableClient(publisher, variables_in_use)


class TestRemote(testing.VariableClientConformance):
  def make_variable_client(self, learner, variables_in_use, stop):
    return variables.RemoteVariableClient(learner, variables_in_use, stop=stop)


class _Asking(variables.VariableClient):
  """Queries the learner in each update."""

  def __init__(self, learner, variables_in_use):
    self._learner = learner
    self._variables = variables_in_use
    self._version, self._max_priority = -1, 1.0
    self._since = time.monotonic()

  @property
  def version(self):
    return self._version

  @property
  def age_seconds(self):
    return time.monotonic() - self._since

  @property
  def max_priority(self):
    return self._max_priority

  def update(self, wait=False):
    self._take_over(self._ask())

  def _ask(self):
    names = ['policy', 'learner_steps', 'max_priority']
    return self._learner.get_variables(names)

  def _take_over(self, found):
    values, self._version, self._max_priority = found
    for variable, value in zip(self._variables, values):
      variable.assign(value)
    self._since = time.monotonic()

  def close(self):
    pass


class _BegunAtOnce(_Asking):
  def __init__(self, learner, variables_in_use):
    super().__init__(learner, variables_in_use)
    self.update()


class _AsksTwice(_Asking):
  """Takes version and priority from other steps than the variables."""

  def _ask(self):
    values, *_ = super()._ask()
    time.sleep(0.001)
    return [values, *super()._ask()[1:]]


class _Immortal(_Asking):
  def update(self, wait=False):
    super().update()
    threading.Thread(target=time.sleep, args=[3], daemon=True).start()


@pytest.mark.parametrize(
  ('client_class', 'check'),
  [
    (_BegunAtOnce, 'has_nothing_at_first'),
    (_AsksTwice, 'versions_are_never_mixed_and_never_fall'),
    (_Asking, 'stop_ends_a_wait'),
    (_Immortal, 'close_ends_all_threads'),
  ],
)
def test_finds_wrong_clients(client_class, check):
  class Checks(testing.VariableClientConformance):
    deadline_seconds = 1.0

    def make_variable_client(self, learner, variables_in_use, stop):
      return client_class(learner, variables_in_use)

  with pytest.raises(AssertionError):
    getattr(Checks(), f'test_{check}')()
