"""Tests of idempotent calls and the thread pool of servers."""

import concurrent.futures
import threading

import pytest

from repertory.launch.launchers import idempotency


@pytest.fixture(name='answers')
def _answers(monkeypatch):
  monkeypatch.setattr(idempotency, '_NUM_KEPT', 2)
  return idempotency.ReplyCache()


def _make(made, answer):
  def make():
    made.append(answer)
    return answer

  return make


def test_the_latest_are_kept(answers):
  made = []
  for call in 'abc':
    answers.get(call, _make(made, call.encode()))
  assert answers.get('c', _make(made, b'new')) == b'c'
  assert answers.get('b', _make(made, b'new')) == b'b'
  assert answers.get('a', _make(made, b'new')) == b'new'
  assert made == [b'a', b'b', b'c', b'new']


def test_large_ones_are_not_kept(answers):
  largest = bytes(idempotency._LARGEST_BYTES)
  made = []
  for answer in (largest, b'new'):
    assert answers.get('a', _make(made, answer)) == largest
    assert answers.get('b', _make(made, answer + b'1')) == answer + b'1'


def test_who_calls_again_waits_for_the_first_answer(answers):
  release, waiting, made = threading.Event(), threading.Event(), []

  def make():
    made.append(1)
    waiting.set()
    assert release.wait(30)
    return b'first'

  with concurrent.futures.ThreadPoolExecutor(2) as executor:
    first = executor.submit(answers.get, 'a', make)
    assert waiting.wait(30)
    for call in 'bcd':  # It does not count among those that are kept.
      answers.get(call, lambda: b'')
    again = executor.submit(answers.get, 'a', make)
    assert not concurrent.futures.wait([again], timeout=0.2).done
    release.set()
    assert first.result(30) == again.result(30) == b'first'
  assert made == [1]
