"""Tests of `components/config/settings.py`."""

import dataclasses
import pickle
from typing import Any, Literal, Optional

import numpy as np
import pytest

from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class _Settings:
  required: 'Optional[int]'  # noqa: UP045
  sizes: tuple[int, ...] = settings.field((8, 4), 'Of layers: a paper.')
  names: 'list[str]' = dataclasses.field(default_factory=lambda: ['a'])
  area: int = dataclasses.field(default=3, init=False)


class TestField:
  def test_describes_fields(self):
    assert settings.describe(_Settings) == [
      settings.Setting('required', 'int | None', dataclasses.MISSING, ''),
      settings.Setting(
        'sizes', 'tuple[int, ...]', (8, 4), 'Of layers: a paper.'
      ),
      settings.Setting('names', 'list[str]', ['a'], ''),
    ]


class TestSettingError:
  def test_reads_as_python(self):
    error = settings.SettingError('max_steps', 'must be at least 1, got 0.')
    assert str(error) == 'max_steps must be at least 1, got 0.'
    assert isinstance(error, ValueError)
    error = settings.SettingError('a', 'is off. Turn it on.', fresh=True, b='c')
    assert str(error) == "a is off. Turn it on (fresh=True, b='c')."

  def test_text_may_begin_with_no_setting(self):
    error = settings.SettingError('', 'The table is full.', size=3)
    assert str(error) == 'The table is full (size=3).'

  def test_can_be_pickled(self):
    error = settings.SettingError('a', 'must be b.', c=1)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == 'a must be b (c=1).'
    assert (again.setting, again.problem) == ('a', 'must be b.')
    assert again.remedy == {'c': 1}


@pytest.mark.parametrize(
  ('error', 'text'),
  [
    (ValueError('It is a.'), 'It is a.'),
    (ConnectionError(), 'ConnectionError'),
    (OSError(' '), 'OSError'),
    (settings.SettingError('a', 'is b.'), 'a is b.'),
  ],
)
def test_errors_without_a_text_have_that_of_their_class(error, text):
  assert settings.text_of(error) == text


Ints = tuple[int, ...]
Mood = Literal['a', 'b', 3]


class TestWriteWhole:
  @pytest.mark.parametrize(
    ('value', 'hint'),
    [
      ('1e4', ' Write 10000.'),
      ('2.0', ' Write 2.'),
      ('many', ''),
      ('inf', ''),
      ('1e999999', ''),
    ],
  )
  def test_hint(self, value, hint):
    assert settings.write_whole(value) == hint


class TestParse:
  @pytest.mark.parametrize(
    ('value', 'annotation', 'expected'),
    [
      ('3', int, 3),
      ('1e-3', float, 1e-3),
      ('true', bool, True),
      ('FALSE', bool, False),
      (False, bool, False),
      ('text', str, 'text'),
      ('1,2', Ints, (1, 2)),
      ('(64, 64)', Ints, (64, 64)),
      ('', Ints, ()),
      ([1, 2], Ints, (1, 2)),
      ('1,2.5', tuple[float, ...], (1.0, 2.5)),
      ('None', float | None, None),
      (None, float | None, None),
      ('2', Optional[int], 2),  # noqa: UP045 (its text differs)
      ('None', str, 'None'),
      ('2', int | float, 2),
      ('0.5', int | float, 0.5),
      ('b', Mood, 'b'),
      ('3', Mood, 3),
      ('2,b', tuple[int, str], (2, 'b')),
      ({'a': 1}, dict[str, int], {'a': 1}),
      ('x', Any, 'x'),
      (np.int64(3), int, 3),
      (np.float32(0.5), float, 0.5),
    ],
  )
  def test_fits(self, value, annotation, expected):
    parsed = settings.parse('x', value, annotation)
    assert parsed == expected
    assert type(parsed) is type(expected)
    if isinstance(expected, tuple):
      assert [type(p) for p in parsed] == [type(e) for e in expected]

  @pytest.mark.parametrize(
    ('value', 'annotation', 'type_name'),
    [
      ('3.5', int, 'int'),
      (3.0, int, 'int'),  # As JSON has it: a whole number by chance.
      (True, float, 'float'),
      ('1', bool, 'bool'),
      ('1,a', Ints, r'tuple\[int, ...\]'),
      (None, Ints, r'tuple\[int, ...\]'),
      ('None', float, 'float'),
      ('a', float | None, r'float \| None'),
      ('c', Mood, 'one of a, b, 3'),
      ('{}', dict[str, int], r'dict\[str, int\]'),
      ([1], dict, 'dict'),
    ],
  )
  def test_does_not_fit(self, value, annotation, type_name):
    with pytest.raises(
      ValueError, match=f'^config.x must be (of type )?{type_name}, got .*'
    ):
      settings.parse('config.x', value, annotation)


class TestDidYouMean:
  def test_nearest_or_nothing(self):
    known = ['alpha', 'beta']
    assert settings.did_you_mean('alhpa', known) == " Did you mean 'alpha'?"
    assert settings.did_you_mean('q', known) == ''
    assert settings.did_you_mean('q', []) == ''

  def test_case_is_no_difference(self):
    known = ['Alpha', 'alpaca', 'beta']
    hint = settings.did_you_mean('ALPHAS', known)
    assert hint == " Did you mean 'Alpha'?"
    assert settings.nearest('ALPHAS', known, 2) == ['Alpha', 'alpaca']
    hint = settings.did_you_mean('ALPHAS', known, 3)
    assert hint == " Did you mean 'Alpha' or 'alpaca'?"
