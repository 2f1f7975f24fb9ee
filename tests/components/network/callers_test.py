"""Tests of `components/network/callers.py`."""

import pytest

from repertory.components.network import callers


def test_replaced_generation_is_refused():
  fencing = callers.Fencing('token')
  old, new = (
    callers.Caller('actor/0', generation, 'token') for generation in (0, 1)
  )
  fencing.check(old)
  fencing.check(new)
  with pytest.raises(
    callers.FencedError, match=r'actor/0 was .* generation must be 1, got 0\.'
  ):
    fencing.check(old)
  fencing.check(new)
  fencing.check(old._replace(name='actor/1'))  # Another caller.


def test_replaced_generation_is_refused_before_the_next_one_calls():
  fencing = callers.Fencing()
  caller = callers.Caller('actor/0')
  fencing.check(caller)
  fencing.replace('actor/0', 2)
  for generation in (0, 1):
    with pytest.raises(callers.FencedError, match='generation must be 2'):
      fencing.check(caller._replace(generation=generation))
  fencing.replace('actor/0', 1)  # A late notice changes nothing.
  with pytest.raises(callers.FencedError, match='generation must be 2'):
    fencing.check(caller._replace(generation=1))
  fencing.check(caller._replace(generation=2))


@pytest.mark.parametrize('token', ['', 'tokem', '\ud800'])
def test_another_token_is_refused_and_not_shown(token):
  fencing = callers.Fencing('token')
  with pytest.raises(
    callers.FencedError, match='must have the token'
  ) as caught:
    fencing.check(callers.Caller('actor/0', 5, token))
  assert "'token'" not in str(caught.value)
  # Nor does it count as a generation.
  fencing.check(callers.Caller('actor/0', 0, 'token'))
