"""Tests of parsing values of a sweep's settings."""

import pytest

from repertory.components.config.settings import SettingError
from repertory.launch.sweeps import manifest, plans, values


class TestRead:
  @pytest.mark.parametrize(
    ('text', 'kind', 'expected'),
    [
      ('1e-3,3e-4', float, ('1e-3', '3e-4')),
      ('None,3,None', int, ('None', '3')),
      ('[a,b],c', str, ('a,b', 'c')),
      ('a[1,2]b', str, ('a[1,2]b',)),
      ('[a]b[c]', str, ('[a]b[c]',)),
      ('(120, 84)', tuple, ('120, 84',)),
      ('[64,64], [256]', tuple, ('64,64', '256')),
      ('[]', tuple, ('',)),
      ('3e-4, linear(3e-4,0)', float, ('3e-4', 'linear(3e-4,0)')),
    ],
  )
  def test_values(self, text, kind, expected):
    assert values.read('name', text, kind) == expected

  @pytest.mark.parametrize(
    ('text', 'kind', 'low', 'high', 'is_log'),
    [
      ('1..10', int, 1, 10, False),
      ('1e-5..1e-2:log', float, 1e-5, 1e-2, True),
      ('.5...9', float, 0.5, 0.9, False),
    ],
  )
  def test_ranges(self, text, kind, low, high, is_log):
    found = values.read('name', text, kind)
    assert found == values.Range(text, low, high, is_log)
    assert type(found.low) is type(found.high) is kind

  @pytest.mark.parametrize(
    ('text', 'kind', 'message'),
    [
      (
        '64,64',
        tuple,
        r"name is a list, so '64,64' may be one or several: write \[\.",
      ),
      ('1,', int, "must have a value before and after each comma, got '1,'"),
      ('[1,2', tuple, r"must close each bracket, got '\[1,2'"),
      ('1..', int, "must be values, or one increasing range .* got '1..'"),
      ('1..3:exp', int, "must be of type int, got '3:exp'"),
      ('3..1', int, "or one increasing range .* got '3..1'"),
      ('0..1:log', float, "or above 0 such as .* got '0..1:log'"),
    ],
  )
  def test_what_can_be_read_in_no_way_or_in_two_is_refused(
    self, text, kind, message
  ):
    with pytest.raises(SettingError, match=message):
      values.read('name', text, kind)


class TestGrid:
  def test_all_combinations_of_a_seed_come_before_the_next_seed(self):
    given = {'a': ('1', '2'), 'seed': ('0', '1'), 'b': ('x',)}
    assert [(c['seed'], c['a'], c['b']) for c in plans.combine(given)] == [
      ('0', '1', 'x'),
      ('0', '2', 'x'),
      ('1', '1', 'x'),
      ('1', '2', 'x'),
    ]

  def test_directories_are_named_by_what_differs(self):
    combination = {
      'env': 'gym:A/b?c=1',
      'config.n_step': '3',
      'config.sizes': '8,8',
      'd': '4',
    }
    axes = ['config.n_step', 'config.sizes', 'env', 'seed']
    settings = {'config.lr': 0.1}  # Not typed.
    name = manifest.name_group(combination, settings, [*axes, 'config.lr'], {})
    assert name == 'n_step=3,sizes=8-8,env=gym-A-b-c-1,lr=0.1'
    run = manifest.make_run(name, {**combination, 'seed': '7'})
    assert run.path == f'{name}/seed_7'
    assert manifest.make_run('', {'seed': '7'}).path == 'seed_7'

  def test_names_that_others_have_and_long_ones_get_a_digest(self):
    one = manifest.name_group({'env': 'a:b'}, {'env': 'a:b'}, ['env'], {})
    other = manifest.name_group(
      {'env': 'a-b'}, {'env': 'a-b'}, ['env'], {one: {}}
    )
    assert one == 'env=a-b'
    assert other.startswith('env=a-b-')
    texts = ['x' * 300 + end for end in 'yz']
    long = [manifest.name_group({'e': t}, {'e': t}, ['e'], {}) for t in texts]
    assert len(set(long)) == 2
    assert all(len(name) < 200 for name in long)
