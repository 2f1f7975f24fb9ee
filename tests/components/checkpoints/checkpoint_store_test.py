"""Tests of the checkpoint store: checkpoints are complete or not there."""

import os
import pathlib

import pytest

from repertory.components import checkpoints
from repertory.components.checkpoints import (
  backends,
  checkpointing,
  fsspec_backend,
)
from support.launch import storage_fixture

KINDS = ('path', 'file', 'memory')


@pytest.fixture(name='place', params=KINDS)
def _place(request, tmp_path):
  place = storage_fixture.make_place(request.param, tmp_path / 'stored')
  yield place
  place.remove('')


class TestShelf:
  def test_stored_checkpoints_are_fetched(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    assert store.newest() is None
    manifest = storage_fixture.add(store, tmp_path / 'a', 3)
    assert store.newest() == manifest
    assert manifest.progress == (3, 30)
    assert manifest.experiment == {'agent': 'a'}
    assert storage_fixture.fetch(store, tmp_path / 'b') == 3
    names = {'arrays.npz', 'state.json', 'checksums.json', 'replay/items'}
    assert set(manifest.files) == names

  def test_bytes_are_counted(self, place, tmp_path):
    counted = []
    path = storage_fixture.write_checkpoint(tmp_path, 1)
    manifest = storage_fixture.make_shelf(place).add(
      path, lambda: None, counted.append
    )
    assert sum(counted) == manifest.num_bytes > 16_000

  def test_manifests_have_the_evaluation(self, place, tmp_path):
    path = storage_fixture.write_checkpoint(tmp_path, 1, evaluation=0.5)
    storage_fixture.make_shelf(place).add(
      path, lambda: None, lambda count: None
    )
    assert storage_fixture.make_shelf(place).newest().episode_return == 0.5

  def test_numbers_continue_from_both(self, place, tmp_path):
    """Another host starts at 1; numbers are equal if possible."""
    store = storage_fixture.make_shelf(place)
    numbers = [
      storage_fixture.add(store, tmp_path / 'a', v).number for v in (1, 2, 3)
    ]
    numbers += [
      storage_fixture.add(store, tmp_path / 'b', v).number for v in (4, 5)
    ]
    assert numbers == [1, 2, 3, 4, 5]
    assert store.newest().learner_steps == 5

  def test_the_same_is_not_stored_twice(self, place, tmp_path):
    path = storage_fixture.write_checkpoint(tmp_path, 1)
    dying = storage_fixture.DyingPlace(place)
    store = storage_fixture.make_shelf(dying)
    first = store.add(path, lambda: None, lambda count: None)
    num_calls = len(dying.calls)
    assert store.add(path, lambda: None, lambda count: None) == first
    assert len(dying.calls) == num_calls

  def test_newest_are_kept(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    for value in range(1, 5):
      storage_fixture.add(store, tmp_path / 'a', value)
    store.keep_newest(2)
    assert [name[:8] for name in store.names()] == ['00000003', '00000004']
    # Neither files nor folders of others remain.
    assert len(place.names('checkpoints')) == 4
    assert storage_fixture.fetch(store, tmp_path / 'b') == 4

  def test_numbers_are_ordered_as_numbers(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    here = checkpointing.Checkpointer(str(tmp_path / 'a'))
    first = pathlib.Path(storage_fixture.write_checkpoint(tmp_path / 'a', 1))
    first.rename(first.with_name('99999999'))
    store.add(here.newest(), lambda: None, lambda count: None)
    storage_fixture.add(store, tmp_path / 'a', 2)
    assert [n.split('-')[0] for n in store.names()] == ['99999999', '100000000']
    assert store.newest().learner_steps == 2

  def test_other_files_are_kept(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    storage_fixture.add(store, tmp_path / 'a')
    for name in ('notes.json', 'mine/x', '00000001.json'):
      place.write(f'checkpoints/{name}', [b'mine'])
    store.remove_unfinished()
    store.keep_newest(1)
    assert storage_fixture.fetch(store, tmp_path / 'b') == 1
    assert {'notes.json', 'mine', '00000001.json'} < set(
      place.names('checkpoints')
    )


class TestOrder:
  def test_manifest_is_written_last_and_removed_first(self, place, tmp_path):
    dying = storage_fixture.DyingPlace(place)
    store = storage_fixture.make_shelf(dying)
    storage_fixture.add(store, tmp_path / 'a', 1)
    kinds = [kind for kind, _ in dying.calls]
    assert kinds == ['write'] * 4 + ['publish']
    storage_fixture.add(store, tmp_path / 'a', 2)
    (old, _), dying.calls = store.names(), []
    store.keep_newest(1)
    folder = f'checkpoints/{old}'
    assert dying.calls == [('remove', f'{folder}.json'), ('remove', folder)]

  def test_checked_before_it_counts(self, place, tmp_path):
    """After all files: another run may have started while they were written."""
    dying = storage_fixture.DyingPlace(place)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 1)

    def refuse():
      assert [kind for kind, _ in dying.calls] == ['write'] * 4
      raise checkpoints.LockLostError('Another one.')

    with pytest.raises(checkpoints.LockLostError):
      storage_fixture.make_shelf(dying).add(path, refuse, lambda count: None)
    assert place.names('checkpoints') == []

  @pytest.mark.parametrize('num_calls', range(6))
  def test_killed_while_storing(self, place, tmp_path, num_calls):
    storage_fixture.add(storage_fixture.make_shelf(place), tmp_path / 'a', 1)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 2)
    store = storage_fixture.make_shelf(
      storage_fixture.DyingPlace(place, num_calls)
    )
    if num_calls < 5:  # Four files and the manifest.
      with pytest.raises(storage_fixture.Killed):
        store.add(path, lambda: None, lambda count: None)
      assert len(place.names('checkpoints')) > 2  # Files remain.
    else:
      store.add(path, lambda: None, lambda count: None)
    expected = 1 + (num_calls >= 5)
    assert len(storage_fixture.make_shelf(place).names()) == expected
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')
      == expected
    )
    # The next run removes remains, and continues.
    storage_fixture.make_shelf(place).remove_unfinished()
    assert len(place.names('checkpoints')) == 2 * expected
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'c')
      == expected
    )
    storage_fixture.add(storage_fixture.make_shelf(place), tmp_path / 'a', 3)
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'd')
      == 3
    )

  @pytest.mark.parametrize('num_calls', range(4))
  def test_killed_while_removing(self, place, tmp_path, num_calls):
    for value in (1, 2, 3):
      storage_fixture.add(
        storage_fixture.make_shelf(place), tmp_path / 'a', value
      )
    with pytest.raises(storage_fixture.Killed):
      storage_fixture.make_shelf(
        storage_fixture.DyingPlace(place, num_calls)
      ).keep_newest(1)
    store = storage_fixture.make_shelf(place)
    store.remove_unfinished()
    names = store.names()
    assert len(place.names('checkpoints')) == 2 * len(names)
    # All that still have manifests are complete.
    while names := store.names():
      value = int(names[-1][:8])
      folder = tmp_path / f'b{value}'
      assert storage_fixture.fetch(store, folder) == value
      place.remove(f'checkpoints/{names[-1]}.json')

  def test_failures_leave_nothing(self, place, tmp_path, monkeypatch):
    store, write = storage_fixture.make_shelf(place), place.write

    def fail(name, chunks):
      is_last = name.endswith('state.json')
      write(name, [next(iter(chunks))[:10]] if is_last else chunks)
      if is_last:
        raise OSError('no room')

    storage_fixture.add(store, tmp_path / 'a', 1)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 2)
    with monkeypatch.context() as patch:
      patch.setattr(place, 'write', fail)
      with pytest.raises(OSError, match='no room'):
        store.add(path, lambda: None, lambda count: None)
    assert len(place.names('checkpoints')) == 2
    assert storage_fixture.fetch(store, tmp_path / 'b') == 1

  def test_a_short_write_is_noticed(self, place, tmp_path, monkeypatch):
    write = place.write

    def cut(name, chunks):
      write(name, [b''.join(chunks)[:-1]])

    monkeypatch.setattr(place, 'write', cut)
    with pytest.raises(OSError, match=r'should have .* bytes, has'):
      storage_fixture.add(storage_fixture.make_shelf(place), tmp_path / 'a', 1)
    assert storage_fixture.make_shelf(place).names() == []


class TestOtherRuns:
  """A disconnected run resumes after another one took over and ended."""

  def check(self, place, store, path):
    before = sorted(place.names('checkpoints'))
    with pytest.raises(
      checkpoints.LockLostError,
      match=r'another run has stored S/checkpoints/0000',
    ):
      store.add(path, lambda: None, lambda count: None)
    assert sorted(place.names('checkpoints')) == before

  @pytest.mark.parametrize('num_stored', [0, 1])
  def test_added_since_the_start(self, place, tmp_path, num_stored):
    for value in range(1, 1 + num_stored):
      storage_fixture.add(
        storage_fixture.make_shelf(place), tmp_path / 'a', value
      )
    store = storage_fixture.make_shelf(place)
    store.begin()
    storage_fixture.add(storage_fixture.make_shelf(place), tmp_path / 'b', 9)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 2)
    self.check(place, store, path)

  def test_added_since_the_last(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    store.begin()
    for value in (1, 2):
      storage_fixture.add(store, tmp_path / 'a', value)
    storage_fixture.add(storage_fixture.make_shelf(place), tmp_path / 'b', 9)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 3)
    self.check(place, store, path)

  def test_added_while_files_are_written(self, place, tmp_path):
    store = storage_fixture.make_shelf(place)
    store.begin()
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 1)
    with pytest.raises(checkpoints.LockLostError):
      store.add(
        path,
        lambda: storage_fixture.add(
          storage_fixture.make_shelf(place), tmp_path / 'b', 9
        ),
        lambda count: None,
      )
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'c')
      == 9
    )
    assert len(storage_fixture.make_shelf(place).names()) == 1

  def test_a_lost_answer_is_not_another_run(self, place, tmp_path, monkeypatch):
    """The answer was lost, and with it the network."""
    store, publish = storage_fixture.make_shelf(place), place.publish

    def fail(*arguments):
      raise OSError('no network')

    def publish_and_fail(name, content):
      publish(name, content)
      fail()

    with monkeypatch.context() as patch:
      patch.setattr(place, 'publish', publish_and_fail)
      patch.setattr(place, 'remove', fail)
      with pytest.raises(OSError, match='no network'):
        storage_fixture.add(store, tmp_path / 'a', 1)
    assert storage_fixture.add(store, tmp_path / 'a', 2).number == 2


class TestMove:
  def test_all_is_moved(self, place, tmp_path):
    store, other = (
      storage_fixture.make_shelf(place),
      storage_fixture.make_shelf(place, 'aside/checkpoints'),
    )
    for value in (1, 2):
      storage_fixture.add(store, tmp_path / 'a', value)
    names = store.names()
    store.move(other, lambda count: None)
    assert store.names() == []
    assert other.names() == names
    assert storage_fixture.fetch(other, tmp_path / 'b') == 2

  @pytest.mark.parametrize('is_long', [False, True])
  def test_bytes_are_counted_as_they_go_by(
    self, place, tmp_path, monkeypatch, is_long
  ):
    def refuse(*arguments, **settings):
      raise PermissionError('no links')

    store = storage_fixture.make_shelf(place)
    num_bytes = storage_fixture.add(store, tmp_path / 'a').num_bytes
    if is_long:  # Otherwise the store may copy at once.
      monkeypatch.setattr(backends, 'CHUNK_BYTES', 1_000)
      monkeypatch.setattr(os, 'link', refuse)
      if isinstance(place, fsspec_backend.FsspecBackend):
        monkeypatch.setattr(
          place, '_copy_in_storage', lambda name, target: False
        )
    counted = []
    other = storage_fixture.make_shelf(place, 'aside/checkpoints')
    store.move(other, counted.append)
    assert sum(counted) == num_bytes > 16_000
    if is_long:
      assert max(counted) == 1_000
    assert storage_fixture.fetch(other, tmp_path / 'b') == 1

  def test_damaged_ones_are_moved_too(self, place, tmp_path):
    store, other = (
      storage_fixture.make_shelf(place),
      storage_fixture.make_shelf(place, 'aside/checkpoints'),
    )
    name = storage_fixture.add(store, tmp_path / 'a').name
    storage_fixture.damage(
      place, f'checkpoints/{name}.json', lambda content: b'{'
    )
    store.move(other, lambda count: None)
    assert (store.names(), other.names()) == ([], [name])

  @pytest.mark.parametrize('num_calls', range(14))
  def test_killed_while_moving(self, place, tmp_path, num_calls):
    for value in (1, 2):
      storage_fixture.add(
        storage_fixture.make_shelf(place), tmp_path / 'a', value
      )
    dying = storage_fixture.DyingPlace(place, num_calls)
    with pytest.raises(storage_fixture.Killed):
      storage_fixture.make_shelf(dying).move(
        storage_fixture.make_shelf(dying, 'aside/checkpoints'),
        lambda count: None,
      )
    store, other = (
      storage_fixture.make_shelf(place),
      storage_fixture.make_shelf(place, 'aside/checkpoints'),
    )
    for one in (store, other):
      one.remove_unfinished()
    found = {name[:8] for name in store.names() + other.names()}
    assert found == {'00000001', '00000002'}
    for i, one in enumerate((store, other)):
      if names := one.names():
        folder = tmp_path / f'b{i}'
        assert storage_fixture.fetch(one, folder) == int(names[-1][:8])
