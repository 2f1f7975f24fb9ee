"""An adder that records its calls."""

import copy

from repertory.components import core


class RecordingAdder(core.Adder):
  """Records all calls: ('first', timestep) or (action, timestep, extras)."""

  def __init__(self):
    self.calls = []

  def add_first(self, timestep):
    self.calls.append(('first', copy.deepcopy(timestep)))

  def add(self, action, next_timestep, extras=()):
    self.calls.append(copy.deepcopy((action, next_timestep, extras)))

  def reset(self):
    self.calls.append(('reset',))
