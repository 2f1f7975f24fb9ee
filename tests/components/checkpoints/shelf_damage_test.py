"""Tests of damaged checkpoints in a storage, which are refused by name."""

import contextlib
import json
import pathlib
import zlib

import pytest

from repertory.components.checkpoints import checkpointing
from support.launch import storage_fixture


@pytest.fixture(name='place', params=['path', 'file', 'memory'])
def _place(request, tmp_path):
  place = storage_fixture.make_place(request.param, tmp_path / 'stored')
  yield place
  place.remove('')


@contextlib.contextmanager
def _changed_manifest(place, name):
  path = f'checkpoints/{name}.json'
  content = json.loads(b''.join(place.read(path)))
  yield content
  storage_fixture.damage(place, path, lambda old: json.dumps(content).encode())


def _flip(content):
  return content[:-1] + bytes([content[-1] ^ 1])


class TestDamage:
  @pytest.fixture(name='name')
  def _name(self, place, tmp_path):
    for value in (1, 2):
      name = storage_fixture.add(
        storage_fixture.make_shelf(place), tmp_path / 'a', value
      ).name
    return name

  @pytest.mark.parametrize(
    'file', ['arrays.npz', 'state.json', 'checksums.json', 'replay/items']
  )
  @pytest.mark.parametrize(
    ('change', 'message'),
    [
      (_flip, 'was damaged: its checksum should be'),
      (lambda content: content[:-1], 'should have .* bytes, has'),
      (lambda content: content + b'x', 'should have .* bytes, has'),
      (lambda content: None, 'is missing'),
    ],
    ids=['flipped', 'cut', 'longer', 'missing'],
  )
  def test_a_file_is_refused_by_name(
    self, place, tmp_path, name, file, change, message
  ):
    storage_fixture.damage(place, f'checkpoints/{name}/{file}', change)
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot.*{file} {message}'
    ) as caught:
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')
    # The previous one is named and not used; nothing is left of the copy.
    assert 'to resume from 00000001-' in str(caught.value)
    assert list((tmp_path / 'b').iterdir()) == []
    # The advice helps.
    place.remove(f'checkpoints/{name}.json')
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')
      == 1
    )

  @pytest.mark.parametrize(
    'content',
    [b'', b'{', b'[]', b'{"format": 1}', b'\xff\xfe', b'{"format": 2}'],
  )
  def test_a_manifest_is_refused(self, place, name, content):
    storage_fixture.damage(
      place, f'checkpoints/{name}.json', lambda old: content
    )
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot .*manifest'
    ):
      storage_fixture.make_shelf(place).newest()

  @pytest.mark.parametrize(
    'file',
    ['../x', '/x', 'a/../../x', '..', 'a//x', './x', '', 'a\\..\\x', 'x\0'],
  )
  def test_a_name_that_leads_out_is_refused(self, place, tmp_path, name, file):
    with _changed_manifest(place, name) as content:
      content['files'][file] = content['files']['state.json']
    with pytest.raises(
      checkpointing.CheckpointError, match='outside its folder'
    ):
      storage_fixture.fetch(
        storage_fixture.make_shelf(place), tmp_path / 'deep' / 'b'
      )
    assert not (tmp_path / 'deep').exists()

  @pytest.mark.parametrize(
    'description', [{'size': '3', 'crc32': 'x'}, {'size': 3, 'crc32': 3}, 3]
  )
  def test_a_description_of_another_kind_is_refused(
    self, place, name, description
  ):
    with _changed_manifest(place, name) as content:
      content['files']['state.json'] = description
    with pytest.raises(checkpointing.CheckpointError, match='manifest'):
      storage_fixture.make_shelf(place).newest()

  @pytest.mark.parametrize(
    'lost',
    [
      ['arrays.npz', 'state.json', 'checksums.json', 'replay/items'],
      ['arrays.npz'],
      ['state.json'],
      ['checksums.json'],
      ['replay/items'],
    ],
  )
  def test_a_manifest_without_some_files_is_refused(
    self, place, tmp_path, name, lost
  ):
    with _changed_manifest(place, name) as content:
      for file in lost:
        del content['files'][file]
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot .* does not list'
    ):
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')
    assert list((tmp_path / 'b').iterdir()) == []

  @pytest.mark.parametrize('found', [b'{', b'\xff', b'[]', b'{"files": [1]}'])
  def test_checksums_of_another_kind_are_refused(
    self, place, tmp_path, name, found
  ):
    file = 'checksums.json'
    storage_fixture.damage(
      place, f'checkpoints/{name}/{file}', lambda old: found
    )
    with _changed_manifest(place, name) as content:
      content['files'][file] = {
        'size': len(found),
        'crc32': f'{zlib.crc32(found):08x}',
      }
    with pytest.raises(
      checkpointing.CheckpointError, match=f'{name} cannot .* does not list'
    ):
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')

  @pytest.mark.parametrize('value', ['0.5', [], True])
  def test_a_return_of_another_kind_is_refused(self, place, name, value):
    with _changed_manifest(place, name) as content:
      content['episode_return'] = value
    with pytest.raises(
      checkpointing.CheckpointError, match=r'manifest.*the episode return is'
    ):
      storage_fixture.make_shelf(place).newest()

  def test_local_damage_is_not_stored(self, place, tmp_path, name):
    del name
    path = pathlib.Path(storage_fixture.write_checkpoint(tmp_path / 'a', 3))
    items = path / 'replay' / 'items'
    content = items.read_bytes()
    items.unlink()
    items.write_bytes(_flip(content))
    with pytest.raises(
      checkpointing.CheckpointError, match='items was damaged'
    ):
      storage_fixture.make_shelf(place).add(
        str(path), lambda: None, lambda count: None
      )
    assert (
      storage_fixture.fetch(storage_fixture.make_shelf(place), tmp_path / 'b')
      == 2
    )
