"""Tests of `agents/dqn/learning.py`."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import dqn
from support.agents import acting_policies, numpy_dqn, transition_updates

B = transition_updates.B
SPEC = transition_updates.DISCRETE_SPEC
# Everything small; both sides of the Huber threshold are met, the gradients are
# clipped in some steps and not in others, and Adam's denominator lets the size
# of a gradient through.
CONFIG = dqn.DQNConfig(
  hidden_sizes=(4,),
  learning_rate=0.1,
  adam_epsilon=0.1,
  huber_threshold=0.7,
  max_gradient_norm=0.5,
  target_update_period=2,
  discount=0.9,
  importance_exponent=0.6,
  jit_compile=False,
)


class TestDQNUpdate:
  @pytest.mark.parametrize(
    ('changes', 'jit_compile'),
    [
      pytest.param({'prioritized': True}, None, id='default'),
      pytest.param({'double': False, 'prioritized': False}, None, id='uniform'),
      pytest.param({'dueling': False}, None, id='no_dueling'),
      pytest.param({'conservative_weight': 0.7}, None, id='conservative'),
      # β is 0.6, 0.7, 0.8, 0.9, and then 1.
      pytest.param(
        {'importance_anneal_learner_steps': 4, 'max_gradient_norm': 0.05},
        True,
        id='annealed_xla',
      ),
    ],
  )
  def test_equals_the_twin(self, changes, jit_compile):
    self.check(changes, [{}] * 6, jit_compile)

  @pytest.mark.parametrize('alone', [False, True])
  def test_equals_the_twin_with_demonstrations(self, alone):
    # Besides its own experience, or offline.
    marks = {} if alone else {'is_demonstration': np.arange(B) % 3 > 0}
    self.check({'margin_weight': 0.7, 'margin': 0.5}, [marks] * 3)

  def check(self, changes, marks, jit_compile=None):
    builder = dqn.DQNBuilder(dataclasses.replace(CONFIG, **changes))
    update = builder.make_update(builder.make_network(SPEC), SPEC)
    modules = update._network, update._target_network
    for seed, module in enumerate(modules):
      acting_policies.fill(module.variables, seed)
    network, target = map(transition_updates.arrays, modules)
    twin = numpy_dqn.Learner(network, target, builder.config)
    transition_updates.check_steps(
      update,
      twin.step,
      [
        {**transition_updates.make_discrete_batch(i), **extra}
        for i, extra in enumerate(marks)
      ],
      lambda: zip(modules, (twin.online, twin.target)),
      jit_compile,
    )
