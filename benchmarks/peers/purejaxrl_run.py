"""Training with PureJaxRL's PPO, in its own virtual environment.

With `reports_returns`, the returns of training are reported. The compiled
program runs without a pause, so processor time is proportional to its steps.
"""

import json
import sys

import jax
import numpy as np
import ppo
import reports

# All are required; the cost depends on none. Cases may have others.
_SETTINGS = {
  'LR': 1e-3, 'ANNEAL_LR': False, 'ACTIVATION': 'tanh', 'GAMMA': 0.99,
  'GAE_LAMBDA': 0.95, 'CLIP_EPS': 0.2, 'ENT_COEF': 0.01, 'VF_COEF': 0.5,
  'MAX_GRAD_NORM': 0.5,
}  # fmt: skip


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  config = {**_SETTINGS, **case, 'TOTAL_TIMESTEPS': case['steps']}
  key = jax.random.PRNGKey(case['seed'])
  train = jax.jit(ppo.make_train(config)).lower(key).compile()
  start = report.cpu_seconds()
  metrics = jax.block_until_ready(train(key))['metrics']
  steps = config['NUM_UPDATES'] * config['NUM_ENVS'] * config['NUM_STEPS']
  report.write(steps=steps)
  if case.get('reports_returns'):
    ended = np.asarray(metrics['returned_episode']).reshape(steps)
    returns = np.asarray(metrics['returned_episode_returns']).reshape(steps)
    times = [(0, start), (steps, report.cpu_seconds())]
    report.write_training_returns(
      1 + np.flatnonzero(ended), returns[ended], times
    )


if __name__ == '__main__':
  main()
