"""Checks of action masks, the leaf `action_mask` of observations."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from dm_env import specs

from repertory.components.runtime import mask_layouts
from repertory.environments.batches import layout
from repertory.environments.batches.layout import Nest
from repertory.environments.values.argument_checks import ArgumentError

NAME = mask_layouts.NAME
_PATH = f'observation[{NAME!r}]'


class MaskCheck:
  """Checks that each mask allows an action, and that no other one is taken.

  For layouts of masks see `components.actions.action_masks`.
  """

  def __init__(self, observation_spec: Mapping[str, Nest], action_spec: Nest):
    """Reads the layout of the masks.

    Raises:
      ArgumentError: If they do not fit the actions.
    """
    self._actions = layout.NestLayout(action_spec, _PATH)
    leaves = self._actions.flatten(observation_spec[NAME])
    self._parts = [
      _make_part(*part)
      for part in zip(self._actions.paths, self._actions.specs, leaves)
    ]
    self._masks: list[np.ndarray] = []

  def observe(
    self, observation: Mapping[str, Nest], last: np.ndarray | None
  ) -> int | None:
    """Stores the masks; returns a slot without an allowed choice, or None.

    `last`, bool `[B]` or None, are the slots whose episode ended.
    """
    self._masks = self._actions.flatten(observation[NAME])
    for part, mask in zip(self._parts, self._masks):
      stuck = ~part.has_choice(mask)
      if last is not None:
        stuck &= ~last
      if stuck.any():
        return int(stuck.argmax())
    return None

  def find_masked(
    self, actions: Nest, ended: np.ndarray | None
  ) -> tuple[int, Any] | None:
    """Returns a slot whose action is masked, and the action, if there is one.

    Actions of `ended` slots are ignored.
    """
    for part, mask, action in zip(
      self._parts, self._masks, self._actions.flatten(actions)
    ):
      masked = ~part.is_allowed(mask, action)
      if ended is not None:
        masked &= ~ended
      if masked.any():
        slot = int(masked.argmax())
        return slot, action[slot].tolist()
    return None


def name_mask(observation: Nest, name: str, mask: Nest) -> dict[str, Nest]:
  """Returns an observation, or its spec, with a mask as `action_mask`.

  An entry of the given name is replaced. An observation that is not a
  dictionary becomes the entry `observation`.
  """
  if not isinstance(observation, Mapping):
    observation = {'observation': observation}
  rest = {key: leaf for key, leaf in observation.items() if key != name}
  return {**rest, NAME: mask}


def spec_of(action_spec: Nest) -> Nest:
  """Returns the nest of specs of the masks of each part of an action."""
  actions = layout.NestLayout(action_spec, 'action')
  sizes = [sum(_sizes_of(*part)) for part in zip(actions.paths, actions.specs)]
  return actions.unflatten([specs.Array((size,), np.bool_) for size in sizes])


def _make_part(
  path: str, spec: Any, mask: specs.Array
) -> mask_layouts.LeafMasks:
  sizes = _sizes_of(path, spec)
  layouts = mask_layouts.layouts_of(spec.shape, sizes)
  is_array = isinstance(mask, specs.Array)
  if not is_array or mask.dtype != np.bool_ or mask.shape not in layouts:
    shapes = ' or '.join(map(str, layouts))
    raise ArgumentError(
      path,
      f'expected bools of shape {shapes}, got {mask!r}. Zeros and ones become '
      f'bools by ?{NAME}={NAME} after the name of the environment.',
    )
  return mask_layouts.LeafMasks(spec, mask.shape)


def _sizes_of(path: str, spec: Any) -> list[int]:
  """Returns the numbers of choices of the integers of an action."""
  is_integer = isinstance(spec, specs.BoundedArray) and spec.dtype.kind in 'iu'
  if not is_integer or 0 in spec.shape:
    raise ArgumentError(
      path,
      'expected actions of integers with bounds, which can be masked, got '
      f'{spec!r}. Leave the mask out of the observation.',
    )
  return mask_layouts.sizes_of(spec)
