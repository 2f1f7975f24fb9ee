"""Tests of DQN with an auxiliary head."""

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.agents.interface import conformance
from repertory.components import specs, types
from repertory.environments.registry import registry
from repertory.examples import auxiliary_head as example
from repertory.launch.experiments import directories
from support.launch import log_files

_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((2, 2), np.float32),
  actions=specs.DiscreteArray(3, np.int32),
  rewards=specs.Array((), np.float32),
  discounts=specs.BoundedArray((), np.float32, 0, 1),
)
_SMALL = {'hidden_sizes': (8,), 'batch_size': 4, 'min_replay_size': 8}


class TestPredictingDQN(conformance.BuilderConformance):
  def make_builder(self):
    return example.PredictingDQN(example.PredictingConfig(**_SMALL))

  def make_spec(self):
    return _SPEC


def test_loss_is_the_squared_error_of_the_prediction():
  builder = example.PredictingDQN(
    example.PredictingConfig(prediction_weight=0.5, **_SMALL)
  )
  network = builder.make_network(_SPEC)
  by_name = {variable.name: variable for variable in network.variables}
  weights = by_name['predicting_network/prediction_head/w:0']
  assert weights.shape == (8 + 3, 4)  # Features and actions; numbers.
  # It predicts 2 for all numbers after action 1, and otherwise 0.
  weights.assign(np.where(np.arange(11)[:, None] == 8 + 1, 2, np.zeros([1, 4])))
  data = types.Transition(
    observation=tf.ones([2, 2, 2]),
    action=tf.constant([1, 2]),
    reward=tf.zeros([2]),
    discount=tf.ones([2]),
    next_observation=tf.constant([[[2.0, 2], [2, 3]], [[1, 0], [0, 2]]]),
  )
  loss, metrics = builder.additional_loss(
    network, types.Sample(data, (), (), ())
  )
  # The errors are 0, 0, 0, 1 and 1, 0, 0, 2.
  assert metrics['prediction_error'] == (1 + 1 + 4) / 2
  assert loss == 0.5 * 3


def _run(directory, max_steps, seed=1, **settings):
  experiment = launch.Experiment(
    example.PredictingDQN(
      example.PredictingConfig(jit_compile=False, **settings)
    ),
    registry.make_factory('catch:6x5'),
    max_steps,
    directory=str(directory),
    seed=seed,
    evaluation_episodes=100,
  )
  return launch.run(experiment, display=False).status


@pytest.mark.learning
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_learns_catch(seed, tmp_path):
  status = _run(tmp_path, 3_000, seed, hidden_sizes=(64,))
  assert status.evaluation_return is not None
  assert status.evaluation_return >= 0.9


def test_head_learns_and_is_saved(tmp_path):
  _run(tmp_path, 600, hidden_sizes=(16,), min_replay_size=100)
  errors = [
    row['prediction_error'] for row in log_files.rows(tmp_path, 'learner')
  ]
  # Two of the 30 numbers are 1; the head initially predicts none.
  assert errors[-1] < 0.8 * errors[0]
  arrays = directories.load_checkpoint(str(tmp_path)).arrays
  (head,) = (
    array for name, array in arrays.items()
    if name.startswith('policy/') and 'prediction_head/b' in name
  )  # fmt: skip
  assert np.abs(head).max() > 0  # Biases are initialized with zeros.
