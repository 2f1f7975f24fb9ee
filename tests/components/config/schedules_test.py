"""Tests of `components/config/schedules.py`."""

import copy
import json
import pickle

import numpy as np
import pytest

from repertory.components.config import schedules, settings

# Values after 0, ¼, ½, ¾ and 1.
_ROOT = 0.5**0.5
_CASES = {
  'linear(4,0)': [4, 3, 2, 1, 0],
  'linear(0.1,0.5,steps=10)': [0.1, 0.2, 0.3, 0.4, 0.5],
  # 45 degrees have a cosine of √½.
  'cosine(2,0)': [2, 1 + _ROOT, 1, 1 - _ROOT, 0],
  'cosine(0,2,steps=3)': [0, 1 - _ROOT, 1, 1 + _ROOT, 2],
  'piecewise(3,0.5:2,0.75:1e-05)': [3, 3, 2, 1e-5, 1e-5],
  'piecewise(-1,0.2:7,steps=100)': [-1, 7, 7, 7, 7],
}


@pytest.mark.parametrize('text', _CASES)
def test_has_values(text):
  schedule = schedules.Schedule(text)
  found = [schedule.value(fraction) for fraction in (0, 0.25, 0.5, 0.75, 1)]
  assert found == pytest.approx(_CASES[text], abs=1e-12)
  assert found[-1] == _CASES[text][-1]  # Without rounding errors.


@pytest.mark.parametrize('text', _CASES)
def test_text_is_stable(text):
  schedule = schedules.Schedule(text)
  copies = (
    schedules.Schedule(schedule),
    copy.deepcopy(schedule),
    pickle.loads(pickle.dumps(schedule)),
  )
  for one in copies:
    assert str(one) == text
    assert type(one) is schedules.Schedule
    assert (one.kind, one.values, one.fractions, one.num_steps) == (
      schedule.kind, schedule.values, schedule.fractions, schedule.num_steps
    )  # fmt: skip
  assert json.loads(json.dumps(settings.plain(schedule))) == text


def test_is_made_of_numbers():
  assert schedules.linear(3e-4, 0.0) == 'linear(0.0003,0)'
  assert schedules.linear(np.float64(0.1), 2, steps=5) == (
    'linear(0.1,2,steps=5)'
  )
  assert schedules.cosine(1, 0.5) == 'cosine(1,0.5)'
  changes = (0.5, 1e-4), (0.8, 1e-5)
  assert schedules.piecewise(3e-4, *changes, steps=7) == (
    'piecewise(0.0003,0.5:0.0001,0.8:1e-05,steps=7)'
  )
  assert schedules.Schedule(' linear( 3e-4 , 0.0, steps=5 )') == (
    schedules.linear(3e-4, 0, steps=5)
  )


@pytest.mark.parametrize(
  'text',
  [
    'linear', 'linear()', 'linear(1)', 'linear(1,2,3)', 'linear(1,nan)',
    'linear(1,inf)', 'linear(a,0)', 'linear(1,0,steps=0)', 'linear(1,0,4)',
    'linear(1,0,steps=1.5)', 'linear(steps=5)', 'exponential(1,0)',
    'piecewise(1)', 'piecewise(1,2)', 'piecewise(1,0:2)', 'piecewise(1,1:2)',
    'piecewise(1,0.5:2,0.5:3)', 'piecewise(1,0.5:2,0.4:3)',
    'piecewise(1,0.5:2:3)', 'piecewise(1,0.5:inf)', '0.1',
  ],
)  # fmt: skip
def test_refuses_other_texts(text):
  with pytest.raises(
    settings.SettingError, match=r'^lr must be linear\(start,end\), .*, got '
  ) as caught:
    schedules.Schedule(text, 'lr')
  assert str(caught.value).endswith(f'got {text!r}.')


def test_refuses_changes_that_are_not_pairs():
  with pytest.raises(
    settings.SettingError, match=r'piecewise\(value, \(fraction, value\)'
  ):
    schedules.piecewise(1.0, 0.5)  # pyright: ignore[reportArgumentType]
