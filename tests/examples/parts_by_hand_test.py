"""Tests of the parts that are wired by hand."""

import importlib.util
import pathlib

import numpy as np
import pytest

import replay_fixture

_PATH = pathlib.Path(__file__).resolve().parents[2] / 'examples'


@pytest.fixture(name='example', scope='module')
def _example():
  spec = importlib.util.spec_from_file_location(
    'parts_by_hand', _PATH / 'parts_by_hand.py'
  )
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _has_learned(returns):
  return np.mean(returns[:100]) < 0 and np.mean(returns[-100:]) > 0.5


def test_learns_and_is_the_same_each_time(example):
  with replay_fixture.no_threads_left():
    returns = example.main()
  assert _has_learned(returns)
  few = example.main(max_steps=600)
  assert returns[: len(few)] == few


def test_learns_over_a_server(example):
  with replay_fixture.no_threads_left():
    assert _has_learned(example.main(over_server=True))
