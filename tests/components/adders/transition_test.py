"""Tests of the transition adder against hand-made tables and a slow twin."""

import itertools

import dm_env
import numpy as np
import pytest
import tree
from dm_env import specs as dm_env_specs

import replay_fixture
import transition_twin
from repertory.components import adders, replay, signals, specs
from repertory.components.adders import transition
from repertory.components.replay import packing

FIRST, MID, LAST = dm_env.StepType

# Of what has observations 0, 1, 2 and actions that say so.
SCALAR_SPEC = specs.EnvironmentSpec(
  observations=dm_env_specs.Array((), np.int64),
  actions=dm_env_specs.Array((), np.int32),
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)
SIGNATURE = transition.signature(SCALAR_SPEC)
G = 0.5


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


@pytest.fixture(name='connection')
def _connection():
  with replay_fixture.serve(replay_fixture.make_fifo(SIGNATURE)) as connection:
    yield connection


def _make_adder(connection, n_step=1, batch_size=1, **settings):
  options = {'discount': G}
  names = ('discount', 'max_abs_reward')
  options.update({k: settings.pop(k) for k in names if k in settings})
  return adders.TransitionAdder(
    replay_fixture.destination(connection, **settings),
    batch_size,
    n_step=n_step,
    **options,
  )


def _batch(observation, step_type=MID, reward=0.0, discount=1.0):
  """Returns a batch of one timestep."""
  return dm_env.TimeStep(
    np.array([step_type], np.int32),
    np.array([reward], np.float32),
    np.array([discount], np.float32),
    np.array([observation], np.int64),
  )


def _add(adder, observation, step_type=MID, reward=0.0, discount=1.0):
  action = np.array([100 + observation - 1], np.int32)
  adder.add(action, _batch(observation, step_type, reward, discount))


def _items(connection):
  """Returns (o, a, R, D, o') of all transitions, in order."""
  return [
    tuple(float(leaf) for leaf in tree.flatten(item.data))
    for item in replay_fixture.drain(connection)
  ]


# Rewards 1, 10, 100, ...: each digit of a sum tells what was put in.
CASES = {
  'n1': (
    1,
    [(1, 1), (10, 1), (100, 0)],
    [(0, 1, 1, 1), (1, 10, 1, 2), (2, 100, 0, 3)],
  ),
  'n2': (
    2,
    [(1, 1), (10, 1), (100, 1), (1000, 0)],
    [
      (0, 1 + G * 10, G, 2),
      (1, 10 + G * 100, G, 3),
      (2, 100 + G * 1000, 0, 4),
      (3, 1000, 0, 4),
    ],
  ),
  'n3': (
    3,
    [(1, 1), (10, 1), (100, 1), (1000, 1), (10000, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100, G**2, 3),
      (1, 10 + G * 100 + G**2 * 1000, G**2, 4),
      (2, 100 + G * 1000 + G**2 * 10000, 0, 5),
      (3, 1000 + G * 10000, 0, 5),
      (4, 10000, 0, 5),
    ],
  ),
  'n5': (
    5,
    [(1, 1), (10, 1), (100, 1), (1000, 1), (10000, 1), (100000, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100 + G**3 * 1000 + G**4 * 10000, G**4, 5),
      (1, 10 + G * 100 + G**2 * 1000 + G**3 * 10000 + G**4 * 100000, 0, 6),
      (2, 100 + G * 1000 + G**2 * 10000 + G**3 * 100000, 0, 6),
      (3, 1000 + G * 10000 + G**2 * 100000, 0, 6),
      (4, 10000 + G * 100000, 0, 6),
      (5, 100000, 0, 6),
    ],
  ),
  'n3_as_long_as_the_episode': (
    3,
    [(1, 1), (10, 1), (100, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100, 0, 3),
      (1, 10 + G * 100, 0, 3),
      (2, 100, 0, 3),
    ],
  ),
  'n5_longer_than_the_episode': (
    5,
    [(1, 1), (10, 1), (100, 0)],
    [
      (0, 1 + G * 10 + G**2 * 100, 0, 3),
      (1, 10 + G * 100, 0, 3),
      (2, 100, 0, 3),
    ],
  ),
  'n1_single_step_terminates': (1, [(7, 0)], [(0, 7, 0, 1)]),
  'n1_single_step_truncated': (1, [(7, 1)], [(0, 7, 1, 1)]),
  'n3_single_step_terminates': (3, [(7, 0)], [(0, 7, 0, 1)]),
  'n3_single_step_truncated': (3, [(7, 1)], [(0, 7, 1, 1)]),
  # A truncated episode goes on in truth: all its ends bootstrap.
  'n3_truncated': (
    3,
    [(1, 1), (10, 1), (100, 1), (1000, 1)],
    [
      (0, 1 + G * 10 + G**2 * 100, G**2, 3),
      (1, 10 + G * 100 + G**2 * 1000, G**2, 4),
      (2, 100 + G * 1000, G, 4),
      (3, 1000, 1, 4),
    ],
  ),
  'n5_truncated_short': (
    5,
    [(1, 1), (10, 1)],
    [(0, 1 + G * 10, G, 2), (1, 10, 1, 2)],
  ),
  # The discount that comes with a reward is for what follows it.
  'n3_discounts': (
    3,
    [(1, 0.25), (10, 0.5), (100, 0.75), (1000, 0.125)],
    [
      (
        0,
        1 + G * 0.25 * 10 + G**2 * 0.25 * 0.5 * 100,
        G**2 * 0.25 * 0.5 * 0.75,
        3,
      ),
      (
        1,
        10 + G * 0.5 * 100 + G**2 * 0.5 * 0.75 * 1000,
        G**2 * 0.5 * 0.75 * 0.125,
        4,
      ),
      (2, 100 + G * 0.75 * 1000, G * 0.75 * 0.125, 4),
      (3, 1000, 0.125, 4),
    ],
  ),
  # Zero in mid-episode: nothing after it counts.
  'n3_discount_zero_in_between': (
    3,
    [(1, 1), (10, 0), (100, 1)],
    [(0, 1 + G * 10, 0, 3), (1, 10, 0, 3), (2, 100, 1, 3)],
  ),
}


@pytest.mark.parametrize(
  ('n_step', 'steps', 'expected'), CASES.values(), ids=CASES
)
def test_transitions_of_an_episode(connection, n_step, steps, expected):
  adder = _make_adder(connection, n_step)
  adder.add_first(_batch(0, FIRST))
  for t, (reward, discount) in enumerate(steps, 1):
    step_type = LAST if t == len(steps) else MID
    _add(adder, t, step_type, reward, discount)
  assert _items(connection) == [(o, 100 + o, *rest) for o, *rest in expected]
  assert adder.num_items == len(steps)
  adder.close()


@pytest.mark.parametrize('n_step', [1, 2, 3])
def test_items_are_there_when_add_returns(connection, n_step):
  adder = _make_adder(connection, n_step)
  adder.add_first(_batch(0, FIRST))
  for t in range(1, 8):
    _add(adder, t)
    assert adder.num_items == max(0, t - n_step + 1)
    # Back from `add`, the items are in the table.
    assert replay_fixture.table_status(connection).inserts == adder.num_items
  adder.close()
  ends = [(item[0], item[-1]) for item in _items(connection)]
  assert ends == [(t, t + n_step) for t in range(8 - n_step)]


def test_gamma_of_one_and_zero(connection):
  steps = [(1, 1.0), (10, 1.0), (100, 1.0)]
  for gamma in (1.0, 0.0):
    adder = _make_adder(connection, n_step=3, discount=gamma)
    adder.add_first(_batch(0, FIRST))
    for t, (reward, discount) in enumerate(steps, 1):
      _add(adder, t, LAST if t == 3 else MID, reward, discount)
    adder.close()
  assert [(item[2], item[3]) for item in _items(connection)] == [
    (111, 1),
    (110, 1),
    (100, 1),
    # With γ = 0 nothing but the next reward counts, and only the single step
    # at the end lacks its γ.
    (1, 0),
    (10, 0),
    (100, 1),
  ]


def test_rewards_are_clipped_before_they_are_summed(connection):
  adder = _make_adder(connection, n_step=2, max_abs_reward=2.0)
  adder.add_first(_batch(0, FIRST))
  _add(adder, 1, reward=5)
  _add(adder, 2, LAST, reward=-7, discount=0)
  adder.close()
  assert _items(connection) == [
    (0, 100, 2 + G * -2, 0, 2),
    (1, 101, -2, 0, 2),
  ]


def test_first_after_last_starts_anew(connection):
  adder = _make_adder(connection, n_step=2)
  adder.add_first(_batch(0, FIRST))
  _add(adder, 1, LAST, reward=1, discount=0)
  adder.add(np.array([-1], np.int32), _batch(50, FIRST))
  assert adder.num_items == 1  # The ignored action makes no step.
  _add(adder, 51, LAST, reward=2, discount=1)
  adder.close()
  assert _items(connection) == [(0, 100, 1, 0, 1), (50, 150, 2, 1, 51)]


def _make_twin_adder(connection, batch_size, n_step, discount, **settings):
  return _make_adder(
    connection, n_step, batch_size, discount=discount, **settings
  )


def _serve_twin(**table_settings):
  signature = transition.signature(
    transition_twin.SPEC, transition_twin.EXTRAS_SPEC
  )
  return replay_fixture.serve(
    replay_fixture.make_fifo(signature, **table_settings)
  )


def _make_episodes(random, num_steps, lengths):
  """Returns random episodes that fill so many steps of a slot, and more."""
  episodes = []
  while sum(len(rewards) + 1 for rewards, _ in episodes) <= num_steps:
    length = random.choice(lengths)
    discounts = random.choice(
      [0.0, 0.5, 0.9, 1.0], length, p=[0.1, 0.2, 0.2, 0.5]
    )
    episodes.append((random.normal(size=length).astype(np.float32), discounts))
  return episodes


def _expect(slot, episodes, num_steps, n_step, gamma):
  """Returns what the twin has made after so many steps of a slot."""
  expected = []
  left = num_steps
  for number, (rewards, discounts) in enumerate(episodes):
    whole = transition_twin.make_transitions(
      slot, number, rewards, discounts, n_step, gamma
    )
    if left < len(rewards):  # Still open.
      return expected + whole[: max(0, left - n_step + 1)]
    expected += whole
    left -= len(rewards) + 1  # The one of FIRST.
    if left <= 0:
      return expected
  return expected


def _assert_equal(found, expected):
  tree.assert_same_structure(found, expected)
  for a, b in zip(tree.flatten(found), tree.flatten(expected)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# All leaves are small, or those of more than 8 or 4 bytes are large.
@pytest.mark.parametrize('max_packed_bytes', [1024, 8, 4])
@pytest.mark.parametrize('batch_size', [1, 3])
@pytest.mark.parametrize('n_step', [1, 2, 3, 5])
@pytest.mark.parametrize('seed', [0, 1])
def test_every_step_starts_one_transition(
  batch_size, n_step, seed, max_packed_bytes, monkeypatch
):
  """Slots end at different times; each has what the twin makes, in order."""
  monkeypatch.setattr(packing, '_MAX_PACKED_BYTES', max_packed_bytes)
  random = np.random.default_rng([seed, n_step, batch_size])
  num_steps = int(random.integers(60, 90))
  gamma = float(random.uniform(0.5, 1))
  episodes = [
    _make_episodes(random, num_steps, [1, 2, 3, 4, 5, 6, 13])
    for _ in range(batch_size)
  ]
  slots = [transition_twin.Slot(i, rows) for i, rows in enumerate(episodes)]
  with _serve_twin() as connection:
    adder = _make_twin_adder(connection, batch_size, n_step, gamma)
    transition_twin.run(adder, slots, num_steps)
    items = [item.data for item in replay_fixture.drain(connection)]
    adder.close()
  num_expected = 0
  for slot in range(batch_size):
    found = [item for item in items if item.observation['place'][0] == slot]
    expected = _expect(slot, episodes[slot], num_steps, n_step, gamma)
    assert len(found) == len(expected)
    num_expected += len(expected)
    for a, b in zip(found, expected):
      _assert_equal(a, b)
  assert len(items) == num_expected == adder.num_items


def test_one_factor_of_gamma_is_left_to_the_learner(connection):
  """R + γ·D·v is the discounted return, whatever the number of steps."""
  value, rewards = 1000.0, [1.0, 10.0, 100.0]
  returns = [
    1 + G * 10 + G**2 * 100 + G**3 * value,
    10 + G * 100 + G**2 * value,
    100 + G * value,
  ]
  for n_step in (3, 5):
    adder = _make_adder(connection, n_step)
    adder.add_first(_batch(0, FIRST))
    for t, reward in enumerate(rewards, 1):
      _add(adder, t, LAST if t == 3 else MID, reward, 1.0)
    adder.close()
    items = _items(connection)
    assert [item[2] + G * item[3] * value for item in items] == returns


@pytest.mark.parametrize('max_packed_bytes', [1024, 4])
def test_long_run_keeps_what_items_refer_to(max_packed_bytes, monkeypatch):
  """Nothing expires, when some slots end at every turn and others hardly do."""
  monkeypatch.setattr(packing, '_MAX_PACKED_BYTES', max_packed_bytes)
  random = np.random.default_rng(0)
  num_steps, n_step, gamma = 1500, 5, 0.9
  lengths = [[1], [1], [1], [2], [5], [6], [1, 40], [1000]]
  episodes = [_make_episodes(random, num_steps, choice) for choice in lengths]
  slots = [transition_twin.Slot(i, rows) for i, rows in enumerate(episodes)]
  with _serve_twin(max_size=400) as connection:
    adder = _make_twin_adder(connection, len(slots), n_step, gamma)
    transition_twin.run(adder, slots, num_steps)
    inserts = replay_fixture.table_status(connection).inserts
    items = [item.data for item in replay_fixture.drain(connection)]
    adder.close()
  expected = [
    _expect(slot, rows, num_steps, n_step, gamma)
    for slot, rows in enumerate(episodes)
  ]
  assert inserts == adder.num_items == sum(map(len, expected))
  assert len(items) == 400
  for slot, rows in enumerate(expected):
    found = [item for item in items if item.observation['place'][0] == slot]
    assert found
    for a, b in zip(found, rows[-len(found) :]):
      _assert_equal(a, b)


def test_priority_is_asked_for_each_item(connection):
  priorities = itertools.count(1)
  adder = _make_adder(
    connection, n_step=2, priority=lambda: float(next(priorities))
  )
  adder.add_first(_batch(0, FIRST))
  for t in range(1, 5):
    _add(adder, t, LAST if t == 4 else MID)
  adder.close()
  items = replay_fixture.drain(connection)
  assert [item.info.priority for item in items] == [1, 2, 3, 4]


@pytest.mark.parametrize('priority', [float('nan'), float('inf'), -0.5])
def test_impossible_priorities_are_refused(connection, priority):
  adder = _make_adder(connection, priority=lambda: priority)
  adder.add_first(_batch(0, FIRST))
  with pytest.raises(ValueError, match=f'priority .* {priority}'):
    _add(adder, 1, LAST)
  adder.close()
  assert replay_fixture.table_status(connection).inserts == 0


def test_reset_drops_open_episodes(connection):
  adder = _make_adder(connection, n_step=2)
  adder.add_first(_batch(0, FIRST))
  for t in range(1, 4):
    _add(adder, t, reward=t)
  adder.reset()
  adder.add_first(_batch(10, FIRST))
  _add(adder, 11, LAST, reward=7, discount=0)
  adder.close()
  assert _items(connection) == [
    (0, 100, 1 + G * 2, G, 2),  # Written before the reset.
    (1, 101, 2 + G * 3, G, 3),
    (10, 110, 7, 0, 11),
  ]
  assert adder.num_items == 3


def test_add_first_drops_open_episodes(connection):
  adder = _make_adder(connection, n_step=3)
  adder.add_first(_batch(0, FIRST))
  _add(adder, 1)
  adder.add_first(_batch(10, FIRST))
  _add(adder, 11, LAST, reward=7, discount=0)
  adder.close()
  assert _items(connection) == [(10, 110, 7, 0, 11)]


def test_reset_keeps_what_is_complete(connection):
  """Items of ended episodes arrive, although they were still on their way."""
  adder = _make_adder(connection, max_pending_items=100)
  for t in range(200):
    adder.add_first(_batch(2 * t, FIRST))
    _add(adder, 2 * t + 1, LAST)
    if t % 10 == 9:
      adder.reset()
  adder.close()
  assert adder.num_items == 200
  assert replay_fixture.table_status(connection).inserts == 200


def test_flush_waits_until_the_table_has_all(connection):
  adder = _make_adder(connection, max_pending_items=1000)
  for _ in range(5):
    adder.add_first(_batch(0, FIRST))
    for t in range(1, 30):
      _add(adder, t)
    adder.flush()
    assert replay_fixture.table_status(connection).inserts == adder.num_items
  adder.close()


def test_close_hands_over_what_is_complete(connection):
  adder = _make_adder(connection, max_pending_items=100)
  adder.add_first(_batch(0, FIRST))
  for t in range(1, 200):
    _add(adder, t)
  adder.close()
  assert replay_fixture.table_status(connection).inserts == adder.num_items


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'n_step': 0}, 'n_step must be at least 1, got 0'),
    ({'batch_size': 0}, 'batch_size must be at least 1, got 0'),
    ({'discount': 1.01}, r'discount must be in \[0, 1\], got 1.01'),
    ({'discount': -0.1}, r'discount must be in \[0, 1\], got -0.1'),
    ({'discount': float('nan')}, r'discount must be in \[0, 1\], got nan'),
    ({'max_abs_reward': 0.0}, 'max_abs_reward must be positive or None, got 0'),
  ],
)
def test_arguments_are_checked(connection, settings, message):
  with pytest.raises(ValueError, match=message):
    _make_adder(connection, **settings)


def test_signature_has_the_specs_of_a_transition():
  signature = transition.signature(
    transition_twin.SPEC, transition_twin.EXTRAS_SPEC
  )
  assert signature.observation['place'].shape == (3,)
  assert signature.next_observation['image'].dtype == np.float32
  assert signature.action['force'].shape == (2,)
  assert signature.reward.shape == signature.discount.shape == ()
  assert signature.extras['logits'].shape == (3,)
  assert transition.signature(SCALAR_SPEC).extras == ()


class TestBackPressure:
  """With 1 sample per item and a buffer of 1, two items run ahead.

  Inserts wait above 1 · min_size + buffer = 2.
  """

  @pytest.fixture(name='make')
  def _make(self):
    table = replay_fixture.make_fifo(
      SIGNATURE, rate_limit=replay.RateLimit(1.0, 1, 1.0)
    )

    def make(**settings):
      connection = replay.Connection(address, **settings)
      adder = _make_adder(connection)
      adder.add_first(_batch(0, FIRST))
      for t in range(1, 3):
        _add(adder, t)
      return connection, adder

    with replay_fixture.serve(table) as connection:
      address = connection.address
      yield make

  def test_time_out(self, make):
    connection, adder = make(timeout_seconds=0.5)
    with pytest.raises(TimeoutError) as error:
      replay_fixture.Call(_add, adder, 3).result()
    assert "table 'replay'" in str(error.value)
    assert connection.address in str(error.value)
    assert '0.5 seconds' in str(error.value)
    connection.stop.set()
    adder.close()

  def test_flush_times_out_too(self, make):
    connection, adder = make(timeout_seconds=0.3)
    with pytest.raises(TimeoutError):
      _add(adder, 3)
    with pytest.raises(TimeoutError):
      adder.flush()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      adder.flush()
    adder.close()

  def test_stop_signal(self, make):
    connection, adder = make(timeout_seconds=60)
    call = replay_fixture.Call(_add, adder, 3)
    assert call.is_waiting()
    connection.stop.set()
    with pytest.raises(signals.Stopped):
      call.result(1)
    replay_fixture.Call(adder.close).result(1)

  def test_goes_on_once_sampled(self, make):
    connection, adder = make(timeout_seconds=60)
    call = replay_fixture.Call(_add, adder, 3)
    assert call.is_waiting()
    assert replay_fixture.table_status(connection).inserts == 2
    found = replay_fixture.sample(connection, 1)
    call.result()
    assert replay_fixture.table_status(connection).inserts == 3
    found += replay_fixture.sample(connection, 1)
    _add(adder, 4)
    found += replay_fixture.sample(connection, 2)
    # None was lost or doubled.
    assert [int(item.data.observation) for item in found] == [0, 1, 2, 3]
    adder.close()

  def test_goes_on_after_a_time_out(self, make):
    connection, adder = make(timeout_seconds=0.3)
    with pytest.raises(TimeoutError):
      _add(adder, 3)
    found = replay_fixture.sample(connection, 2)
    _add(adder, 4)
    found += replay_fixture.sample(connection, 2)
    assert [int(item.data.observation) for item in found] == [0, 1, 2, 3]
    adder.close()

  def test_close_that_times_out_still_closes_the_writer(self, make):
    _, adder = make(timeout_seconds=0.3)
    with pytest.raises(TimeoutError):
      _add(adder, 3)
    with pytest.raises(TimeoutError):
      adder.close()
    with pytest.raises(RuntimeError, match='Close'):
      _add(adder, 4)

  def test_put_never_waits(self, make):
    """Who puts may go on, and is told that the table is behind."""
    connection, adder = make(timeout_seconds=60)
    action = np.array([0], np.int32)
    for t in range(3, 6):
      replay_fixture.Call(adder.put, action, _batch(t)).result(1)
      assert replay_fixture.Call(adder.is_ahead).result(1)
    waiting = replay_fixture.Call(adder.wait)
    assert waiting.is_waiting()
    replay_fixture.sample(connection, 3)
    waiting.result()
    assert not adder.is_ahead()
    assert replay_fixture.table_status(connection).inserts == 5
    adder.close()

  def test_pending_items_may_run_ahead(self, make):
    """`add` returns while at most so many items are on their way."""
    connection, _ = make()
    adder = _make_adder(
      replay.Connection(connection.address, timeout_seconds=0.3),
      max_pending_items=2,
    )
    adder.add_first(_batch(10, FIRST))
    for t in range(11, 13):
      _add(adder, t)
    assert adder.num_items == 2
    with pytest.raises(TimeoutError):
      _add(adder, 13)
    with pytest.raises(TimeoutError):
      adder.close()
