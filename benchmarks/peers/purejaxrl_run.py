"""Training with PureJaxRL's PPO, in its own virtual environment."""

import json
import sys

import jax
import ppo
import reports

# All are required; the cost depends on none.
_SETTINGS = {
  'LR': 1e-3, 'ANNEAL_LR': False, 'ACTIVATION': 'tanh', 'GAMMA': 0.99,
  'GAE_LAMBDA': 0.95, 'CLIP_EPS': 0.2, 'ENT_COEF': 0.01, 'VF_COEF': 0.5,
  'MAX_GRAD_NORM': 0.5,
}  # fmt: skip


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  config = {**_SETTINGS, **case, 'TOTAL_TIMESTEPS': case['steps']}
  train = jax.jit(ppo.make_train(config))
  jax.block_until_ready(train(jax.random.PRNGKey(case['seed'])))
  steps = config['NUM_UPDATES'] * config['NUM_ENVS'] * config['NUM_STEPS']
  reports.Report(case).write(steps=steps)


if __name__ == '__main__':
  main()
