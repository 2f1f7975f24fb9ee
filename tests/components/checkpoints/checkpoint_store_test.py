"""Tests of the checkpoint store: checkpoints are complete or not there."""

import json
import os
import pathlib

import pytest

from repertory.components.checkpoints import checkpointing, storage
from support.launch import storage_fixture
from support.launch.storage_fixture import add, fetch, make_store


@pytest.fixture(name='folder')
def _folder(tmp_path):
  folder = storage.StorageFolder(f'memory://{tmp_path}')
  yield folder
  folder.remove('')


@pytest.fixture(name='store')
def _store(folder):
  return make_store(folder)


class TestStore:
  def test_stored_checkpoints_are_fetched(self, store, tmp_path):
    assert store.newest() is None
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 3, evaluation=0.5)
    manifest = store.add(path, lambda: None)
    assert manifest.num_bytes > 16_000
    assert store.newest() == manifest
    assert manifest.state['counts'] == {'learner_steps': 3, 'steps': 30}
    assert manifest.experiment == {'agent': 'a'}
    assert manifest.episode_return == 0.5
    assert fetch(store, tmp_path / 'b') == 3
    names = {'arrays.npz', 'state.json', 'checksums.json', 'replay/items'}
    assert set(manifest.files) == names

  def test_numbers_continue_from_both(self, store, tmp_path):
    """Another host starts at 1; numbers are equal if possible."""
    numbers = [add(store, tmp_path / 'a', v).number for v in (1, 2, 3)]
    numbers += [add(store, tmp_path / 'b', v).number for v in (4, 5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert store.newest().learner_steps == 5

  def test_the_same_is_not_stored_twice(self, store, tmp_path):
    path = storage_fixture.write_checkpoint(tmp_path, 1)
    first, second = (store.add(path, lambda: None) for _ in range(2))
    assert first == second
    assert store.names() == [first.name]

  def test_newest_are_kept_in_order_of_numbers(self, folder, store, tmp_path):
    add(store, tmp_path / 'a', 1)
    path = pathlib.Path(storage_fixture.write_checkpoint(tmp_path / 'a', 2))
    path = path.rename(path.with_name('99999999'))
    store.add(str(path), lambda: None)
    add(store, tmp_path / 'a', 3)
    for name in ('notes.json', 'mine/x', '00000001.json'):
      folder.publish(f'checkpoints/{name}', b'mine')
    store.keep_newest(2)
    store.remove_unfinished()
    assert [n.split('-')[0] for n in store.names()] == ['99999999', '100000000']
    assert fetch(store, tmp_path / 'b') == 3
    # Files of others stay.
    assert len(folder.names('checkpoints')) == 4 + 3


class TestInterruptions:
  def test_manifest_is_written_last_and_removed_first(self, folder, tmp_path):
    dying = storage_fixture.DyingFolder(folder)
    store = make_store(dying)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 1)
    # Another run may have started while the files were written.
    checked = []
    store.add(path, lambda: checked.append(len(dying.calls)))
    assert checked == list(range(5))
    assert [kind for kind, _ in dying.calls] == ['upload'] * 4 + ['publish']
    add(store, tmp_path / 'a', 2)
    (old, _), dying.calls = store.names(), []
    store.keep_newest(1)
    path = f'checkpoints/{old}'
    assert dying.calls == [('remove', f'{path}.json'), ('remove', path)]

  @pytest.mark.parametrize('num_calls', [3, 4])
  def test_killed_while_storing(self, folder, tmp_path, num_calls):
    store = make_store(folder)
    add(store, tmp_path / 'a', 1)
    path = storage_fixture.write_checkpoint(tmp_path / 'a', 2)
    dying = make_store(storage_fixture.DyingFolder(folder, num_calls))
    with pytest.raises(storage_fixture.Killed):
      dying.add(path, lambda: None)
    assert len(folder.names('checkpoints')) > 2  # Files remain.
    assert fetch(store, tmp_path / 'b') == 1
    # The next run removes remains, and continues.
    store.remove_unfinished()
    assert len(folder.names('checkpoints')) == 2
    add(store, tmp_path / 'a', 3)
    assert fetch(store, tmp_path / 'd') == 3


class TestDamage:
  @pytest.fixture(name='name')
  def _name(self, store, tmp_path):
    add(store, tmp_path / 'a', 1)
    return add(store, tmp_path / 'a', 2).name

  @pytest.mark.parametrize(
    ('file', 'change', 'message'),
    [
      (
        'arrays.npz',
        storage_fixture.flip,
        'was damaged: its checksum should be',
      ),
      ('replay/items', lambda old: old[:-1], 'should have .* bytes, has'),
      ('checksums.json', lambda old: old + b'x', 'should have .* bytes, has'),
      ('state.json', lambda old: None, 'is missing'),
    ],
  )
  def test_a_file_is_refused_by_name(
    self, folder, store, tmp_path, name, file, change, message
  ):
    storage_fixture.damage(folder, f'checkpoints/{name}/{file}', change)
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot.*{file} {message}'
    ) as caught:
      fetch(store, tmp_path / 'b')
    # The previous one is named and not used; nothing is left of the copy.
    assert 'to resume from 00000001-' in str(caught.value)
    assert os.listdir(tmp_path / 'b') == []
    # The advice helps.
    folder.remove(f'checkpoints/{name}.json')
    assert fetch(store, tmp_path / 'b') == 1

  @pytest.mark.parametrize('content', [b'\xff', b'{"format": 2}'])
  def test_a_manifest_is_refused(self, folder, store, name, content):
    path = f'checkpoints/{name}.json'
    storage_fixture.damage(folder, path, lambda old: content)
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot .*manifest'
    ):
      store.newest()

  @pytest.mark.parametrize('file', ['../x', '/x', 'a\\x'])
  def test_a_name_that_leads_out_is_refused(self, folder, store, name, file):
    def change(old):
      content = json.loads(old)
      content['files'][file] = content['files']['state.json']
      return json.dumps(content).encode()

    storage_fixture.damage(folder, f'checkpoints/{name}.json', change)
    with pytest.raises(
      checkpointing.CheckpointError, match='outside its folder'
    ):
      store.newest()

  def test_local_damage_is_not_stored(self, store, tmp_path, name):
    path = pathlib.Path(storage_fixture.write_checkpoint(tmp_path / 'a', 3))
    items = path / 'replay' / 'items'
    content = items.read_bytes()
    items.unlink()
    items.write_bytes(storage_fixture.flip(content))
    with pytest.raises(
      checkpointing.CheckpointError, match='items was damaged'
    ):
      store.add(str(path), lambda: None)
    assert store.newest().name == name
