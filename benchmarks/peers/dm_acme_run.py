"""Training with dm-acme's TensorFlow agents, in its own virtual environment.

An agent of dm-acme has a single environment when run in one process.
"""

import json
import sys

import gym
import numpy as np
import reports
import sonnet as snt
from acme import environment_loop, specs, wrappers
from acme.agents.tf import d4pg, dqn, impala
from acme.tf import networks
from acme.utils import counting, loggers


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
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  environment = wrappers.SinglePrecisionWrapper(
    wrappers.GymWrapper(gym.make(case['environment']))
  )
  spec = specs.make_environment_spec(environment)
  make = _MAKERS[case['algorithm']]
  agent = make(spec, case['hidden_sizes'], case['settings'])
  # A private attribute: an agent acts and learns in one call.
  report.report_first_update(agent._learner, 'step')
  counter = counting.Counter()
  loop = environment_loop.EnvironmentLoop(
    environment, agent, counter=counter, logger=loggers.NoOpLogger()
  )
  loop.run(num_steps=case['steps'])
  # Includes steps of the last episode beyond the requested number.
  report.write(steps=int(counter.get_counts()['steps']))


if __name__ == '__main__':
  main()
