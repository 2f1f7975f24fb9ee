"""Tests of `launch/trained/videos.py`."""

import os
import stat
import sys

import imageio.v3 as imageio
import numpy as np
import psutil
import pytest

from repertory.components.config import settings
from repertory.launch.trained import videos
from support.environments import video_files


def make_noise(count, height, width):
  random = np.random.default_rng(0)
  palette = random.integers(0, 256, (7, 3), np.uint8)
  return palette[random.integers(0, 7, (count, height, width))]


def write(folder, frames, rate, video_format):
  _, height, width, _ = frames.shape
  unfinished = folder / 'unfinished'
  file = videos.VideoFile(str(unfinished), height, width, rate, video_format)
  for frame in frames:
    file.add(frame)
  path = folder / f'video.{video_format}'
  assert not path.exists()
  file.save_as(str(path))
  assert not unfinished.exists()
  return path


class TestMp4:
  def test_small_frames_are_enlarged_by_a_whole_factor(self, tmp_path):
    frames = make_noise(3, height=10, width=5)
    path = write(tmp_path, frames, 30, 'mp4')
    found = video_files.read(path)
    assert found.shape == (3, 480, 240, 3)
    expected = np.kron(frames, np.ones((48, 48, 1), np.uint8))
    # Edges between colors are blurred, but areas are not.
    inner = (np.arange(480) % 48 > 7) & (np.arange(480) % 48 < 40)
    inner = np.outer(inner, inner[:240])
    error = np.abs(found.astype(float) - expected)[:, inner]
    assert error.max() < 25
    assert error.mean() < 4

  def test_no_frame_is_dropped_at_odd_rates(self, tmp_path):
    # Odd sizes are padded, and large ones not enlarged. Hopper's rate is often
    # taken for 120.
    path = write(tmp_path, make_noise(30, 301, 243), 125, 'mp4')
    assert video_files.read(path).shape == (30, 302, 244, 3)
    assert video_files.read_rate(path) == pytest.approx(125, rel=1e-3)


class TestGif:
  @pytest.mark.parametrize(('rate', 'seconds'), [(10, 0.1), (60, 0.02)])
  def test_is_at_most_50_a_second(self, tmp_path, rate, seconds):
    path = write(tmp_path, make_noise(20, 8, 8), rate, 'gif')
    assert len(video_files.read(path)) == 20
    meta = imageio.immeta(path, plugin='pillow', index=5)
    assert meta['duration'] == 1000 * seconds


class TestFailures:
  def test_full_disk(self, tmp_path):
    os.symlink('/dev/full', tmp_path / 'video')  # A device without room.
    frames = np.random.default_rng(0).integers(
      0, 256, (3, 300, 300, 3), np.uint8
    )
    with pytest.raises(videos.VideoError, match='No space left on device'):
      file = videos.VideoFile(str(tmp_path / 'video'), 300, 300, 30, 'mp4')
      for frame in frames:
        file.add(frame)
      file.save_as(str(tmp_path / 'whole'))
    self.check_nothing_is_left(tmp_path)

  def test_program_that_hangs(self, tmp_path, monkeypatch):
    program = tmp_path / 'ffmpeg'
    program.write_text('#!/bin/sh\nexec sleep 600\n')
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv('IMAGEIO_FFMPEG_EXE', str(program))
    monkeypatch.setattr(videos, '_END_SECONDS', 0.1)
    file = videos.VideoFile(str(tmp_path / 'video'), 4, 4, 30, 'mp4')
    file.add(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(videos.VideoError, match=r'within 0\.1'):
      file.save_as(str(tmp_path / 'whole'))
    program.unlink()
    self.check_nothing_is_left(tmp_path)

  def check_nothing_is_left(self, folder):
    assert not os.listdir(folder)
    assert not psutil.Process().children()


class TestCheck:
  def test_program_that_is_not_there(self, monkeypatch):
    monkeypatch.setenv('IMAGEIO_FFMPEG_EXE', '/nowhere/ffmpeg')
    with pytest.raises(settings.SettingError, match='/nowhere/ffmpeg cannot'):
      videos.prepare(True, 'mp4', '')

  def test_missing_package(self, monkeypatch):
    monkeypatch.setitem(sys.modules, 'imageio_ffmpeg', None)
    with pytest.raises(
      settings.SettingError, match=r"pip install 'repertory\[video\]'"
    ):
      videos.prepare(True, 'mp4', '')
