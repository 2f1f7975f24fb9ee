"""Tests of `components/networks/return_network.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks, specs

SPEC = specs.Array((3,), np.float32)
A, B = 4, 5


def make(hidden_sizes=(6, 7), dueling=True, **settings):
  network = networks.ReturnNetwork(
    SPEC, A, hidden_sizes, 'auto', dueling=dueling, **settings
  )
  random = np.random.default_rng(0)
  for variable in sorted(network.variables, key=lambda v: v.name):
    variable.assign(random.normal(size=variable.shape))
  return network


def observe(num_rows=B):
  random = np.random.default_rng(1)
  return tf.constant(random.normal(size=(num_rows, 3)), tf.float32)


def slow_network(network, observation, tau=0.0, noise=None):
  """Outputs of one row, `[A]` or `[A, N]`, from the variables by name."""
  arrays = {v.name: v.numpy().astype(float) for v in network.variables}
  left = [] if noise is None else list(noise)

  def linear(name, x):
    name = f'return_network/{name}'
    if f'{name}/w:0' in arrays:
      return x @ arrays[f'{name}/w:0'] + arrays[f'{name}/b:0']
    w, b = arrays[f'{name}/mu_w:0'], arrays[f'{name}/mu_b:0']
    if noise is not None:
      numbers = np.array([left.pop(0) for _ in range(sum(w.shape))])
      f = np.sign(numbers) * np.sqrt(np.abs(numbers))
      of_inputs, of_outputs = f[: w.shape[0]], f[w.shape[0] :]
      w = w + arrays[f'{name}/sigma_w:0'] * np.outer(of_inputs, of_outputs)
      b = b + arrays[f'{name}/sigma_b:0'] * of_outputs
    return x @ w + b

  def times_tau(x):
    cosines = np.array([np.cos(np.pi * i * tau) for i in range(64)])
    return x * np.maximum(linear('tau', cosines), 0)

  is_implicit = any('/tau/' in name for name in arrays)
  x, num_hidden = observation, 0
  while any(f'/hidden_{num_hidden}/' in name for name in arrays):
    num_hidden += 1
  for i in range(num_hidden):
    if is_implicit and i == num_hidden - 1:
      x = times_tau(x)
    x = np.maximum(linear(f'hidden_{i}', x), 0)
  if is_implicit and not num_hidden:
    x = times_tau(x)
  outputs = linear('advantage', x).reshape(A, -1)
  if any('/value/' in name for name in arrays):
    outputs = outputs - outputs.mean(axis=0) + linear('value', x)
  assert not left
  return outputs


@pytest.mark.parametrize(
  ('kind', 'hidden_sizes', 'dueling', 'is_noisy'),
  [
    ('value', (6, 7), False, False),
    ('several', (), True, True),
    ('several', (6,), False, False),
    ('implicit', (), True, False),
    ('implicit', (6, 7), False, True),
  ],
)
def test_equals_the_twin(kind, hidden_sizes, dueling, is_noisy):
  settings = {
    'value': {}, 'several': {'num_outputs': 2}, 'implicit': {'implicit': True}
  }[kind]  # fmt: skip
  network = make(
    hidden_sizes, dueling, noisy_sigma=0.5 if is_noisy else None, **settings
  )
  random = np.random.default_rng(2)
  noise = random.normal(size=(B, network.noise_size)) if is_noisy else None
  taus = random.uniform(size=(B, 3)) if kind == 'implicit' else None
  found = network(
    observe(),
    *(
      None if one is None else tf.constant(one, tf.float32)
      for one in (taus, noise)
    ),
  )
  for b, row in enumerate(observe().numpy().astype(float)):
    numbers = None if noise is None else noise[b]
    if taus is None:
      expected = slow_network(network, row, noise=numbers)
    else:
      columns = [slow_network(network, row, tau, numbers) for tau in taus[b]]
      expected = np.concatenate(columns, axis=1)
    if kind == 'value':
      expected = expected[:, 0]
    np.testing.assert_allclose(found[b], expected, rtol=1e-3, atol=2e-3)


def test_has_its_variables_when_it_is_made():
  network = networks.ReturnNetwork(
    SPEC, A, (6,), 'auto', implicit=True, noisy_sigma=0.5
  )
  before = len(network.variables)
  network(observe(), tf.ones([B, 2]), tf.ones([B, network.noise_size]))
  # The layer of τ and four of each of the three noisy ones.
  assert len(network.variables) == before == 2 + 3 * 4


@pytest.mark.parametrize('sigma', [0.1, 0.5])
def test_noisy_layer_begins_as_published(sigma):
  tf.random.set_seed(0)
  layer = networks.NoisyLinear(100, 50, sigma)
  arrays = {v.name.split('/')[-1]: v.numpy() for v in layer.variables}
  assert sorted(arrays) == ['mu_b:0', 'mu_w:0', 'sigma_b:0', 'sigma_w:0']
  for name in ('mu_w:0', 'mu_b:0'):
    # Uniform within ± 1 / √100.
    assert np.abs(arrays[name]).max() <= 0.1
    assert arrays[name].max() > 0.08
    assert arrays[name].min() < -0.08
  for name in ('sigma_w:0', 'sigma_b:0'):
    np.testing.assert_allclose(arrays[name], sigma / 10, rtol=1e-6)
