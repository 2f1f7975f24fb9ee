"""Layouts of action masks, which agents and environments share."""

from collections.abc import Sequence

# Key of the mask in observations.
NAME = 'action_mask'


def layouts_of(
  shape: Sequence[int], sizes: Sequence[int]
) -> dict[tuple[int, ...], bool]:
  """Returns the shapes that masks of an action may have.

  For each it is whether the mask is of the combinations of all integers, and
  not of the choices of each integer.

  Args:
    shape: Shape of the action.
    sizes: Number of choices of each of its integers.
  """
  layouts: dict[tuple[int, ...], bool] = {(sum(sizes),): False}
  if len(sizes) > 1:
    layouts[tuple(sizes)] = True
  if len(set(sizes)) == 1:
    layouts[(*shape, sizes[0])] = False
  return layouts
