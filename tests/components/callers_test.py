"""Tests of `components/callers.py`."""

import pytest

from repertory.components import callers


def test_replaced_generation_is_refused():
  admission = callers.Fencing('token')
  old, new = (callers.Caller('actor/0', life, 'token') for life in (0, 1))
  admission.check(old)
  admission.check(new)
  with pytest.raises(
    callers.RefusedError, match=r'actor/0 was .* generation must be 1, got 0\.'
  ):
    admission.check(old)
  admission.check(new)
  admission.check(old._replace(name='actor/1'))  # Another caller.


def test_replaced_generation_is_refused_before_the_next_one_calls():
  admission = callers.Fencing()
  caller = callers.Caller('actor/0')
  admission.check(caller)
  admission.replace('actor/0', 2)
  for life in (0, 1):
    with pytest.raises(callers.RefusedError, match='generation must be 2'):
      admission.check(caller._replace(life=life))
  admission.replace('actor/0', 1)  # A late notice changes nothing.
  with pytest.raises(callers.RefusedError, match='generation must be 2'):
    admission.check(caller._replace(life=1))
  admission.check(caller._replace(life=2))


@pytest.mark.parametrize('token', ['', 'tokem', 'token ', 'tökén', '\ud800'])
def test_another_token_is_refused_and_not_shown(token):
  admission = callers.Fencing('token')
  with pytest.raises(
    callers.RefusedError, match='must have the token'
  ) as caught:
    admission.check(callers.Caller('actor/0', 5, token))
  assert "'token'" not in str(caught.value)
  # Nor does it count as a generation.
  admission.check(callers.Caller('actor/0', 0, 'token'))
