"""Tests of `agents/sac/learning.py`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents import sac
from repertory.agents.sac import learning
from support.agents import acting_policies, numpy_sac, transition_updates

make_batch = transition_updates.make_continuous_batch
to_sample = transition_updates.to_sample
B, D = transition_updates.B, transition_updates.D
SPEC = transition_updates.CONTINUOUS_SPEC
CONFIG = sac.SACConfig(
  hidden_sizes=(4,),
  batch_size=B,
  discount=0.8,
  learning_rate=0.05,
  temperature_learning_rate=0.1,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  initial_temperature=0.4,
  target_update_rate=0.3,
)


DISCRETE = dataclasses.replace(
  CONFIG, critic_hidden_sizes=(5,), policy_learning_rate=0.03
)


def make(config, spec=SPEC):
  tf.random.set_seed(0)
  builder = sac.SACBuilder(config)
  return builder.make_update(builder.make_network(spec), spec)


_CROSSQ = {
  'body': 'batch_renorm_mlp',
  'target_update_rate': None,
  'adam_first_decay': 0.5,
}
_CQL = {'conservative_weight': 0.7, 'policy_learning_rate': 0.02}
_DROQ = {
  'critic_body': 'normalized_mlp',
  'critic_hidden_sizes': (5, 3),
  'dropout_rate': 0.3,
}
_TQC = {
  'num_critics': 3,
  'critics_of_policy': 'mean',
  'num_quantiles': 5,
  'num_dropped_quantiles': 2,
}
_REDQ = {
  'num_critics': 4,
  'num_target_critics': 2,
  'critics_of_policy': 'mean',
  'policy_update_period': 2,
}


class TestSACUpdate:
  @pytest.mark.parametrize(
    ('changes', 'jit_compile'),
    [
      pytest.param({}, None, id='default'),
      pytest.param({}, True, id='xla', marks=pytest.mark.chaos),
      pytest.param(
        {'body': 'batch_renorm_mlp', 'prioritized': True},
        None,
        id='batch_renorm_prioritized',
      ),
      pytest.param(
        {'target_entropy': 1.5, 'max_gradient_norm': 0.3}, None, id='clipped'
      ),
      pytest.param(_REDQ, None, id='redq'),
      pytest.param(_CROSSQ, None, id='crossq'),
      pytest.param({**_TQC, **_CQL}, None, id='cql_tqc'),
      pytest.param(_DROQ, None, id='droq'),
      pytest.param(_TQC, True, id='tqc_xla', marks=pytest.mark.chaos),
    ],
  )
  def test_equals_the_twin(self, changes, jit_compile):
    config = dataclasses.replace(CONFIG, **changes)
    update = make(config)
    uniforms = np.random.default_rng(0).uniform(
      size=(3, B, config.num_critics, sum(config.critic_layers[1]))
    )
    drawings = iter(tf.constant(uniforms, tf.float32))
    update._noise.uniforms = lambda shape: next(drawings)
    masks = (uniforms >= config.dropout_rate) / (1 - config.dropout_rate)
    random = np.random.default_rng(1)
    proposed = random.uniform(-1, 1, (B, 3, D)), random.normal(size=(B, 3))
    if config.conservative_weight is not None:
      update._propose = lambda data: learning.Sampled(
        *(tf.constant(each, tf.float32) for each in proposed)
      )
    number = config.num_target_critics or config.num_critics
    drawn = np.arange(config.num_critics)[-number:]
    if number < config.num_critics:
      update._values._drawn = lambda q: tf.gather(q, drawn, axis=-1)
    given = {'masks': masks, 'proposals': proposed, 'drawn': drawn}
    twin = numpy_sac.Twin(update)
    batches = [{**make_batch(i), **given} for i in range(2)]
    transition_updates.check_steps(
      update, twin.step, batches, twin.pairs, jit_compile
    )

  @pytest.mark.parametrize(
    ('changes', 'jit_compile'),
    [
      pytest.param({'prioritized': True}, None, id='prioritized'),
      pytest.param(
        {'target_entropy': 0.2, 'critics_of_policy': 'mean', 'num_critics': 3},
        True,
        id='mean_of_three_xla',
        marks=pytest.mark.chaos,
      ),
    ],
  )
  def test_of_discrete_actions_equals_the_twin(self, changes, jit_compile):
    update = make(
      dataclasses.replace(DISCRETE, **changes), transition_updates.DISCRETE_SPEC
    )
    for module in (*update._online, update._target_critics):
      acting_policies.fill(module.variables)
    twin = numpy_sac.DiscreteTwin(update)
    batches = [transition_updates.make_discrete_batch(i) for i in range(2)]
    transition_updates.check_steps(
      update, twin.step, batches, twin.pairs, jit_compile
    )

  def test_critics_of_the_target_are_drawn_anew(self):
    update = make(dataclasses.replace(CONFIG, **_REDQ))
    q = tf.constant([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
    pairs = []
    for _ in range(120):
      drawn = update._values._drawn(q).numpy()
      assert drawn.shape == (2, 2)
      np.testing.assert_array_equal(drawn[0] + 4, drawn[1])
      pairs.append(tuple(sorted(drawn[0])))
    # Each of the six pairs, 20 times but for chance: 4 is a deviation.
    counts = [pairs.count(pair) for pair in set(pairs)]
    assert len(counts) == 6
    assert min(counts) > 5

  def test_layers_are_left_out_anew_each_time(self):
    update = make(dataclasses.replace(CONFIG, **_DROQ))
    data = to_sample(make_batch(0)).data
    drawn = [update._dropout(data.action)[0].numpy() for _ in range(50)]
    assert drawn[0].shape == (B, CONFIG.num_critics, 5 + 3)
    assert np.abs(drawn[0] - drawn[1]).max() > 0
    # 0 in 0.3 of all, 1 / 0.7 elsewhere; 0.007 is a deviation of the share.
    np.testing.assert_allclose(np.unique(drawn), [0, 1 / 0.7], rtol=1e-6)
    assert abs(np.mean(np.equal(drawn, 0)) - 0.3) < 0.03

  def test_proposals_are_of_this_state_and_of_the_next(self):
    config = dataclasses.replace(CONFIG, **_CQL, num_conservative_actions=2)
    update = make(config)
    update._noise.normals = tf.zeros
    data = to_sample(make_batch(0)).data
    here, next_ = (
      update._act(observation, tf.zeros([B, D]))[0]
      for observation in (data.observation, data.next_observation)
    )
    action = update._propose(data).action  # Two uniform ones come first.
    np.testing.assert_allclose(
      action[:, 2:], tf.stack([here, here, next_, next_], axis=1), rtol=1e-5
    )
    assert np.abs(here - next_).min() > 1e-4

  def test_another_run_may_begin_with_what_layers_know_of_their_inputs(self):
    update = make(dataclasses.replace(CONFIG, body='batch_renorm_mlp'))
    learned = {v.ref() for found in update.learned.values() for v in found}
    for module in (*update._online, update._target_critics):
      assert {v.ref() for v in module.variables} <= learned


class TestNetworks:
  def test_layers_of_policy_and_critics(self):
    config = sac.SACConfig(
      body='simba', hidden_sizes=(3,), critic_body='normalized_mlp',
      critic_hidden_sizes=(4, 5), num_critics=3, num_quantiles=7,
      critics_of_policy='mean',
    )  # fmt: skip
    policy, critics = make(config)._online
    shapes = {v.name: tuple(v.shape) for v in policy.variables}
    assert shapes['observation_torso/simba/block_0/inner/w:0'] == (3, 12)
    shapes = {v.name: tuple(v.shape) for v in critics.variables}
    assert shapes['critic/normalized_mlp/linear_1/w:0'] == (3, 4, 5)
    assert shapes['critic/head/w:0'] == (3, 5, 7)


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    (sac.PRESETS['droq'], r'dropout_rate must be 0\.0 for discrete actions'),
    (sac.PRESETS['tqc'], 'num_quantiles must be None for discrete actions'),
    ({'noise_correlation': 0.5}, r'noise_correlation must be 0\.0 for'),
    (sac.PRESETS['cql'], 'conservative_weight must be None for discrete'),
    (sac.PRESETS['crossq'], 'target_update_rate must be a number for discrete'),
  ],
)
def test_refuses_what_is_for_continuous_actions(changes, expected):
  agent = sac.SACBuilder(sac.SACConfig(**{**changes, 'hidden_sizes': (4,)}))
  with pytest.raises(ValueError, match=expected):
    agent.make_network(transition_updates.DISCRETE_SPEC)
