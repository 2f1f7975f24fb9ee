"""Trains with dm-acme's TensorFlow agents; runs in an environment of its own.

Prints steps per second, its warm-up left out. In one process, an agent of
dm-acme has one environment.
"""

import json
import sys
import time

import gym
import numpy as np
import sonnet as snt
from acme import environment_loop, specs, wrappers
from acme.agents.tf import d4pg, dqn, impala
from acme.tf import networks
from acme.utils import loggers

# Of the steps, these come before the clock is started.
_WARM_UP_SHARE = 0.2


class _Clock:
  """An observer of the loop: measures from the end of the warm-up on."""

  def __init__(self, steps):
    self._start = _WARM_UP_SHARE * steps
    self._steps = 0
    self._began = None

  def observe_first(self, env, timestep):
    pass

  def observe(self, env, timestep, action):
    self._steps += 1
    if self._began is None and self._steps >= self._start:
      self._began = self._steps, time.perf_counter()

  def get_metrics(self):
    return {}

  def rate(self):
    if self._began is None:
      raise RuntimeError('It ended before the clock was started.')
    steps, began = self._began
    return (self._steps - steps) / (time.perf_counter() - began)


def _make_dqn(spec, sizes, settings):
  network = snt.Sequential(
    [snt.Flatten(), snt.nets.MLP([*sizes, spec.actions.num_values])]
  )
  return dqn.DQN(
    spec, network, checkpoint=False, logger=loggers.NoOpLogger(), **settings
  )


def _make_d4pg(spec, sizes, settings):
  size = int(np.prod(spec.actions.shape))
  policy = snt.Sequential(
    [
      networks.LayerNormMLP(sizes, activate_final=True),
      networks.NearZeroInitializedLinear(size),
      networks.TanhToSpec(spec.actions),
    ]
  )
  critic = snt.Sequential(
    [
      networks.CriticMultiplexer(),
      networks.LayerNormMLP(sizes, activate_final=True),
      networks.DiscreteValuedHead(-150.0, 150.0, 51),
    ]
  )
  return d4pg.D4PG(
    spec, policy, critic, checkpoint=False, logger=loggers.NoOpLogger(),
    **settings,
  )  # fmt: skip


def _make_impala(spec, sizes, settings):
  settings = dict(settings)
  network = snt.DeepRNN(
    [
      snt.Flatten(),
      snt.nets.MLP(sizes, activate_final=True),
      snt.LSTM(settings.pop('core_size')),
      networks.PolicyValueHead(spec.actions.num_values),
    ]
  )
  return impala.IMPALA(spec, network, logger=loggers.NoOpLogger(), **settings)


_MAKERS = {'DQN': _make_dqn, 'D4PG': _make_d4pg, 'IMPALA': _make_impala}


def main():
  """Runs what the argument, a JSON object, asks for."""
  case = json.loads(sys.argv[1])
  environment = wrappers.SinglePrecisionWrapper(
    wrappers.GymWrapper(gym.make(case['environment']))
  )
  spec = specs.make_environment_spec(environment)
  make = _MAKERS[case['algorithm']]
  agent = make(spec, case['hidden_sizes'], case['settings'])
  clock = _Clock(case['steps'])
  loop = environment_loop.EnvironmentLoop(
    environment, agent, logger=loggers.NoOpLogger(), observers=[clock]
  )
  loop.run(num_steps=case['steps'])
  print(json.dumps({'steps_per_second': clock.rate()}))


if __name__ == '__main__':
  main()
