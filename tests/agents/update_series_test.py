"""Tests of several gradient steps per learner step."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory import launch
from support.agents import acting_policies, agent_batches
from support.system import rare_cases

_AGENTS = ('dqn', 'r2d2', 'sac', 'd4pg')
_K = 3


def _make(name, num_steps, **settings):
  """Makes a builder and its update; the networks are always the same."""
  builder = agent_batches.make_builder(
    name, num_sgd_steps_per_step=num_steps, **settings
  )
  spec = agent_batches.AGENTS[name].spec
  tf.random.set_seed(0)
  network = builder.make_network(spec)
  acting_policies.fill(network.trainable_variables)
  return builder, builder.make_update(network, spec)


def _part(batch, i):
  assert len(batch.keys) == 4 * _K
  return tree.map_structure(lambda x: x[4 * i : 4 * (i + 1)], batch)


@pytest.mark.parametrize('prioritized', rare_cases.daily([False, True], [True]))
@pytest.mark.parametrize('name', rare_cases.daily(_AGENTS, ['dqn', 'd4pg']))
def test_is_one_update_after_the_other(name, prioritized):
  settings = {'prioritized': prioritized}
  if prioritized:  # The count of learner steps continues.
    settings['importance_anneal_learner_steps'] = 5
  builder, series = _make(name, _K, **settings)
  _, single = _make(name, 1, **settings)
  spec = agent_batches.AGENTS[name].spec
  batch = agent_batches.make_batch(builder, spec, 1)
  results = [single(_part(batch, i)) for i in range(_K)]
  found = series(batch)
  for ours, theirs in zip(series.variables, single.variables, strict=True):
    np.testing.assert_array_equal(ours, theirs, ours.name)
  for metric in results[0].metrics:
    mean = np.mean([result.metrics[metric] for result in results])
    np.testing.assert_allclose(found.metrics[metric], mean, 1e-5, 1e-6)
  if not prioritized:
    assert found.priorities is None
    return
  priorities = np.concatenate(
    [np.asarray(result.priorities) for result in results]
  )
  np.testing.assert_array_equal(found.priorities, priorities)


def test_the_replay_ratio_stays(tmp_path):
  """At 8 samples per insert, 1.5 inserts per learner step of 3 × 4 items."""
  config = {
    'hidden_sizes': (8,),
    'batch_size': 4,
    'num_sgd_steps_per_step': 3,
    'min_replay_size': 20,
    'samples_per_insert': 8.0,
    'n_step': 1,
    'jit_compile': False,
  }
  experiment = launch.make_experiment(
    'dqn', 'tensor:catch', max_steps=120, config=config,
    directory=str(tmp_path), evaluation_episodes=0,
  )  # fmt: skip
  status = launch.run(experiment, display=False).status
  (table,) = status.tables
  # Before the 20th insert nothing is due.
  due = 8 * (table.inserts - 20) / (3 * 4)
  assert abs(status.learner_steps - due) <= 2
  assert due > 40


def test_too_few_steps_name_both_settings(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=100, directory=str(tmp_path),
    config={'min_replay_size': 95, 'num_sgd_steps_per_step': 100},
  )  # fmt: skip
  message = (
    r'batch_size · num_sgd_steps_per_step / samples_per_insert = 3200 / 16'
  )
  with pytest.raises(ValueError, match=message):
    launch.run(experiment, display=False)
