"""Checks that agents neither take masked actions nor learn from them."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.agents.interface import builder as builder_lib
from repertory.agents.interface import conformance
from repertory.components import specs
from support.agents import acting_policies, agent_batches, known_agents
from support.system import rare_cases

_MASKED = 4  # Masked in all batches; actions of batches are 0 or 1.
_ONE = specs.DiscreteArray(5)
_DIALS = specs.BoundedArray((2,), np.int64, [0, 1], [4, 3])
_NESTED = {'dial': specs.DiscreteArray(5), 'keys': (specs.DiscreteArray(2),)}
_IQN = {'num_taus': 3, 'num_target_taus': 3, 'num_policy_taus': 4}
_GRU = {'core': 'gru', 'core_size': 3}
_C51 = {'distribution': 'categorical', 'num_atoms': 6}
_CASES = {
  **{name: (name, {}) for name in known_agents.taking('discrete')},
  'dqn, normalized': (
    'dqn', {'normalize_observations': True, 'normalize_rewards': True},
  ),
  'pqn, normalized': ('pqn', {'normalize_observations': True}),
  'dqn, plain': ('dqn', {'double': False, 'dueling': False}),
  'dqn, rainbow': ('dqn', {**_C51, 'noisy': True, 'munchausen': True}),
  'dqn, quantile': ('dqn', {'distribution': 'quantile', 'num_quantiles': 3}),
  'dqn, iqn': (
    'dqn', {'distribution': 'implicit_quantile', **_IQN, 'munchausen': True},
  ),
  'dqn, cql': (
    'dqn', {'conservative_weight': 1.0, 'munchausen': True},
  ),
  'r2d2, plain': ('r2d2', {'dueling': False, 'core_size': 3}),
  'mpo, categorical': ('mpo', _C51),
  **{f'{a}, gru': (a, _GRU) for a in ('impala', 'ppo', 'pqn', 'vmpo')},
}  # fmt: skip
_DAILY = ['dqn', 'dqn, rainbow', 'r2d2', 'ppo, gru', 'sac', 'mpo', 'bc']
_DAILY += ['dqn, normalized']
_each = pytest.mark.parametrize('case', rare_cases.daily(_CASES, _DAILY))


def _make(case, actions=_ONE, mask=None):
  """Makes a builder, and a spec with masks."""
  name, settings = _CASES[case]
  made = agent_batches.make_builder(name, **settings)
  if mask is None:
    mask = specs.Array((5,), np.bool_)
  observations = {'x': specs.Array((3,), np.float32), 'action_mask': mask}
  spec = agent_batches.AGENTS[name].spec._replace(
    observations=observations, actions=actions
  )
  if made.observes_previous_action_and_reward:
    spec = spec._replace(
      observations={
        'observation': observations,
        'previous_action': actions,
        'previous_reward': spec.rewards,
      }
    )
  return made, spec


def _leaves_of_masks(spec, nest):
  pairs = zip(tree.flatten_with_path(spec.observations), tree.flatten(nest))
  return [leaf for (path, _), leaf in pairs if 'action_mask' in path[:2]]


@_each
class TestBuilders(conformance.BuilderConformance):
  @pytest.fixture(autouse=True)
  def _agent(self, case):
    self.builder, self.spec = _make(case)

  def make_builder(self):
    return self.builder

  def make_spec(self):
    return self.spec


def _act(case, actions=_ONE, mask=None, **acting):
  """Yields random masks and the actions taken, of 8 rows."""
  made, spec = _make(case, actions, mask)
  network = made.make_network(spec)
  acting_policies.fill(network.trainable_variables)
  policy = made.make_policy(network, builder_lib.Acting(spec, 8, 3, **acting))
  random = np.random.default_rng(1)
  state = policy.initial_state(range(8))
  for _ in range(30):

    def draw(leaf):
      if leaf.dtype == np.bool_:
        drawn = random.random((8, *leaf.shape)) < 0.4
        # At least one choice of each dial.
        for i in (0, leaf.shape[0] - 1):
          drawn[(slice(None), i) + (0,) * (len(leaf.shape) - 1)] = True
        return drawn
      return random.normal(size=(8, *leaf.shape)).astype(leaf.dtype)

    observation = tree.map_structure(draw, spec.observations)
    output = policy.step(tree.map_structure(tf.constant, observation), state)
    state = output.state
    masks = _leaves_of_masks(spec, observation)
    yield masks, tree.map_structure(np.asarray, output.action)


@_each
@pytest.mark.parametrize('evaluation', [False, True])
def test_no_masked_action_is_taken(case, evaluation):
  for (mask,), action in _act(case, evaluation=evaluation):
    assert mask[np.arange(8), action].all()


def _batch(made, spec):
  """Returns a batch with masks of all actions but one, at least two allowed."""
  sample = agent_batches.make_batch(made, spec, 2)
  random = np.random.default_rng(5)

  def draw(path, leaf):
    if 'action_mask' not in path:
      return leaf
    mask = random.random(leaf.shape) < 0.5
    mask[..., :2] = True
    mask[..., _MASKED] = False
    return tf.constant(mask)

  data = tree.map_structure_with_path(draw, sample.data)
  return sample._replace(data=data)


def _columns_of(variable):
  """Returns the columns of the masked action in a layer of outputs, or None."""
  size = variable.shape[-1] if variable.shape.rank else 0
  if not size or size % 5:
    return None
  each = size // 5
  return slice(_MASKED * each, (_MASKED + 1) * each)


def _update(case, value):
  """Updates once; outputs of the masked action are near `value` before.

  Returns metrics, variables of networks, and their parts for that action.
  """
  made, spec = _make(case)
  if made.observes_previous_action_and_reward:
    made = agent_batches.make_builder(
      _CASES[case][0], **_CASES[case][1], previous_action_and_reward=False
    )
    spec = spec._replace(observations=spec.observations['observation'])
  tf.random.set_seed(0)
  network = made.make_network(spec)
  update = made.make_update(network, spec)
  variables = {
    variable.ref(): variable
    for variable in update.variables
    # Those of optimizers are not outputs.
    if not variable.name.startswith(('adam/', 'm:', 'v:', 'v_max:'))
  }
  acting_policies.fill([v for v in variables.values() if v.trainable])
  found = []
  for variable in variables.values():
    columns = _columns_of(variable)
    if columns is not None:
      values = variable.numpy()
      values[..., columns] = value
      variable.assign(values)
      found.append(columns)
  assert found
  metrics = tf.function(update, autograph=False)(_batch(made, spec)).metrics
  kept, masked = [], []
  for variable in variables.values():
    values = variable.numpy()
    columns = _columns_of(variable)
    if columns is not None:
      masked.append(values[..., columns].copy())
      values[..., columns] = 0
    kept.append(values)
  return {k: float(v) for k, v in metrics.items()}, kept, masked


@_each
def test_masked_actions_do_not_matter_to_updates(case):
  metrics, kept, masked = _update(case, 0.25)
  others, kept_others, masked_others = _update(case, 1e4)
  assert metrics == pytest.approx(others, rel=1e-5, abs=1e-6)
  for one, other in zip(kept, kept_others, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
  # Exactly: gradients are 0.
  assert all((one == 0.25).all() for one in masked)
  assert all((one == 1e4).all() for one in masked_others)


@pytest.mark.parametrize('case', ['dqn', 'r2d2', 'sac', 'mpo', 'bc', 'pqn'])
def test_combinations_are_masked_by_parts(case):
  mask = {'dial': specs.Array((5,), bool), 'keys': (specs.Array((2,), bool),)}
  for (dial, key), action in _act(case, _NESTED, mask):
    assert dial[np.arange(8), action['dial']].all()
    assert key[np.arange(8), action['keys'][0]].all()


@pytest.mark.parametrize('case', ['dqn', 'mpo'])
def test_combinations_are_masked_together(case):
  for (mask,), action in _act(case, _DIALS, specs.Array((5, 3), bool)):
    first, second = action[:, 0], action[:, 1] - 1
    assert mask[np.arange(8), first, second].all()


@pytest.mark.parametrize('case', ['impala', 'ppo, gru', 'vmpo', 'dqn'])
def test_integers_of_an_array_are_masked(case):
  for (mask,), action in _act(case, _DIALS, specs.Array((8,), bool)):
    first, second = action[:, 0], action[:, 1] + 4
    assert mask[np.arange(8), first].all()
    assert mask[np.arange(8), second].all()
