"""Tests of `environments/registry.py`."""

import pickle
import subprocess
import sys

import numpy as np
import tree
from absl.testing import absltest, parameterized

from repertory.environments import registry


class RegistryTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('catch', 'catch', (10, 5)),
    ('catch_of_another_size', 'catch:12x7', (12, 7)),
    ('memory_chain', 'memory_chain', (3,)),
    ('memory_chain_of_another_length', 'memory_chain:30', (3,)),
    ('gymnasium', 'gym:CartPole-v1', (4,)),
  )
  def test_make(self, name, shape):
    environment = registry.make(name, seed=0)
    self.assertEqual(environment.observation_spec().shape, shape)
    self.assertEqual(environment.reset().observation.shape, shape)
    environment.close()

  @parameterized.parameters(('memory_chain', 10), ('memory_chain:3', 3))
  def test_length_of_memory_chain(self, name, length):
    environment = registry.make(name, seed=0)
    environment.reset()
    num_steps = 1
    while not environment.step(0).last():
      num_steps += 1
    self.assertEqual(num_steps, length + 1)

  @parameterized.parameters(
    'catch', 'memory_chain', 'gym:CartPole-v1', 'gym:Pendulum-v1'
  )
  def test_single_precision(self, name):
    environment = registry.make(name, seed=0)
    specs = (
      environment.observation_spec(),
      environment.action_spec(),
      environment.reward_spec(),
      environment.discount_spec(),
    )
    for spec in tree.flatten(specs):
      self.assertEqual(spec.dtype.itemsize, 4)

  @parameterized.parameters('catch', 'memory_chain', 'gym:CartPole-v1')
  def test_factory_can_be_pickled(self, name):
    factory = registry.make_factory(name)
    copy = pickle.loads(pickle.dumps(factory))
    self.assertEqual(copy, factory)

    def observe(make, seed):
      environment = make(seed)
      return [environment.reset().observation for _ in range(5)]

    np.testing.assert_array_equal(observe(copy, 3), observe(factory, 3))
    self.assertFalse(np.array_equal(observe(copy, 3), observe(factory, 4)))

  def test_names(self):
    entries = registry.names()
    self.assertEqual(
      [pattern for pattern, _, _ in entries],
      [
        'catch',
        'catch:<rows>x<columns>',
        'memory_chain',
        'memory_chain:<length>',
        'gym:<id>',
      ],
    )
    for _, description, _ in entries:
      self.assertNotEmpty(description)
      self.assertNotIn('\n', description)
    requirements = [requirement for _, _, requirement in entries]
    self.assertEqual(requirements[:4], [''] * 4)
    self.assertIn('repertory[gymnasium]', requirements[4])

  @parameterized.parameters(
    ('cach', "'catch'"),
    ('Catch', "'catch'"),
    ('cach:12x7', "'catch:12x7'"),
    ('catch:12', "'catch:<rows>x<columns>'"),
    ('memory-chain', "'memory_chain'"),
    ('memory_chian:30', "'memory_chain:30'"),
    ('memory_chain:long', "'memory_chain:<length>'"),
    ('gim:CartPole-v1', "'gym:CartPole-v1'"),
    ('gymnasium:CartPole-v1', "'gym:CartPole-v1'"),
    ('CartPole-v1', "'gym:CartPole-v1'"),
    ('gym:', "'gym:<id>'"),
  )
  def test_unknown_name(self, name, suggestion):
    with self.assertRaisesRegex(
      ValueError,
      f'`name`.*got {name!r}. Did you mean {suggestion}.*repertory environm',
    ):
      registry.make_factory(name)

  def test_nothing_alike(self):
    with self.assertRaises(ValueError) as raised:
      registry.make('zzzzzz', seed=0)
    self.assertNotIn('Did you mean', str(raised.exception))
    self.assertIn('gym:<id>', str(raised.exception))

  def test_factory_checks_numbers_at_once(self):
    with self.assertRaisesRegex(ValueError, '`rows`.*at least 2, got 1'):
      registry.make_factory('catch:1x5')
    with self.assertRaisesRegex(ValueError, '`length`.*at least 1, got 0'):
      registry.make_factory('memory_chain:0')

  def test_unknown_gymnasium_id(self):
    with self.assertRaisesRegex(ValueError, 'Did you mean.*CartPole-v1'):
      registry.make('gym:CartPol-v1', seed=0)

  def test_gymnasium_is_imported_only_when_needed(self):
    # In a process of its own, as other tests have imported gymnasium.
    program = (
      'import sys\n'
      'from repertory.environments import batch, registry, wrappers\n'
      'registry.names()\n'
      "registry.make_factory('gym:CartPole-v1')\n"
      "registry.make('catch', seed=0)\n"
      "assert 'gymnasium' not in sys.modules\n"
      "registry.make('gym:CartPole-v1', seed=0)\n"
      "assert 'gymnasium' in sys.modules\n"
    )
    subprocess.run([sys.executable, '-c', program], check=True, timeout=120)


if __name__ == '__main__':
  absltest.main()
