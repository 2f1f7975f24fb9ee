"""Environments that fail, and experiments with them."""

import itertools

from repertory import launch
from repertory.agents import dqn
from repertory.environments.registry import registry


class Troubled:
  """Factory of Catch environments, one of which fails.

  They are made for the smoke test, the actor and the evaluator, in this order.
  """

  def __init__(self, which, what, trouble):
    self._which = which
    self._what = what
    self._trouble = trouble
    self._numbers = itertools.count(1)

  def __call__(self, seed):
    number = next(self._numbers)  # Each thread gets a different one.
    environment = registry.make('catch', seed)
    if number == self._which:
      if self._what == 'make':
        self._trouble()
      method, calls = getattr(environment, self._what), []

      def troubled(*arguments):
        calls.append(arguments)
        if len(calls) == (300 if self._what == 'step' else 1):
          self._trouble()
        return method(*arguments)

      setattr(environment, self._what, troubled)
    return environment


def make_experiment(folder, factory, **settings):
  defaults = {'max_steps': 600, 'evaluation_episodes': 1}
  return launch.Experiment(
    dqn.DQNBuilder(dqn.DQNConfig(jit_compile=False)),
    factory,
    directory=str(folder / 'run'),
    **{**defaults, **settings},
  )
