"""Wrappers in environment names: `gym:CartPole-v1?frame_stack=4`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dm_env

from repertory.environments import wrappers
from repertory.environments.registry import name_options
from repertory.environments.values.argument_checks import ArgumentError

if TYPE_CHECKING:
  from repertory.environments.registry import families


class Wrapper(NamedTuple):
  """Option of all names that wraps the environment.

  Attributes:
    option: The option; False or None wrap nothing.
    wrap: Wraps an environment, given the value of the option.
    wrap_batch: Wraps a batch; without it, a batch is a loop over environments.
  """

  option: name_options.Option
  wrap: Callable[[dm_env.Environment, Any], dm_env.Environment]
  wrap_batch: Callable[[Any, Any], Any] | None = None


def _change(option: name_options.Option, change: Callable) -> Wrapper:
  """Returns the wrapper of a `wrappers.observations.Change`, see there.

  The change takes the spec, and the value of the option unless it is True.
  """

  def find(value: Any) -> Callable:
    return change if value is True else lambda spec: change(spec, value)

  return Wrapper(
    option,
    lambda env, value: wrappers.ChangedObservations(env, find(value)),
    lambda batch, value: wrappers.ChangedBatch(batch, find(value)),
  )


def _keeping_masks(change: Callable) -> Callable:
  def change_others(spec: Any, *value: Any) -> Any:
    return wrappers.keeping_masks(lambda rest: change(rest, *value), spec)

  return change_others


_MAX = 2**31 - 1
WRAPPERS = {
  wrapper.option.name: wrapper
  for wrapper in (
    _change(
      name_options.Option(
        'channels_first', False, 'Transpose images from [C, H, W]'
      ),
      _keeping_masks(wrappers.channels_last),
    ),
    _change(
      name_options.Option('grayscale', False, 'Convert images to gray ones'),
      _keeping_masks(wrappers.grayscale),
    ),
    _change(
      name_options.Option(
        'resize', None, 'Resize images to squares of pixels', 1, 4096, int
      ),
      _keeping_masks(wrappers.resize),
    ),
    _change(
      name_options.Option(
        'flatten', False, 'Concatenate the observation to a vector'
      ),
      _keeping_masks(wrappers.flatten),
    ),
    Wrapper(
      name_options.Option(
        'frame_stack', None, 'Stack the last observations', 1, 1024, int
      ),
      wrappers.FrameStack,
      wrappers.BatchFrameStack,
    ),
    Wrapper(
      name_options.Option(
        'action_repeat', None, 'Repeat each action', 1, _MAX, int
      ),
      wrappers.ActionRepeat,
    ),
    Wrapper(
      name_options.Option(
        'time_limit', None, 'Truncate episodes after steps', 1, _MAX, int
      ),
      wrappers.StepLimit,
    ),
    Wrapper(
      name_options.Option(
        'rescale_actions', False, 'Scale actions from [-1, 1] to their bounds'
      ),
      lambda env, _: wrappers.RescaledActions(env),
    ),
    Wrapper(
      name_options.Option(
        'discretize', None, 'Values of each float of actions', 2, 65_536, int
      ),
      wrappers.DiscretizedActions,
    ),
    Wrapper(
      name_options.Option(
        'action_mask', None, 'Key of the action mask', kind=str
      ),
      wrappers.ActionMask,
    ),
    _change(
      name_options.Option(
        'observe_mask', False, 'Add the action mask to the inputs of networks'
      ),
      wrappers.observe_mask,
    ),
  )
}


def parse(
  name: str, known: Sequence[name_options.Option]
) -> tuple[dict[str, Any], list[tuple[Wrapper, Any]]]:
  """Parses the options of a name.

  Returns:
    The values of the known options, and the wrappers with their values, in the
    order of the name. An option of its own hides a wrapper.

  Raises:
    ArgumentError: As by `name_options.parse`.
  """
  own = {option.name for option in known}
  others = [w.option for w in WRAPPERS.values() if w.option.name not in own]
  values = name_options.parse(name, known, others)
  chosen = [
    (WRAPPERS[option], value)
    for option, value in values.items()
    if option not in own and value is not False
  ]
  return {k: v for k, v in values.items() if k in own}, chosen


def wrap(
  makers: 'families.Makers', chosen: Sequence[tuple[Wrapper, Any]]
) -> 'families.Makers':
  """Returns functions that make environments and wrap them in order."""
  if not chosen:
    return makers

  batched = [
    (wrapper.wrap_batch, value)
    for wrapper, value in chosen
    if wrapper.wrap_batch is not None
  ]

  def make(seed: int) -> dm_env.Environment:
    environment = makers.make(seed)
    for wrapper, value in chosen:
      environment = wrapper.wrap(environment, value)
    return environment

  def make_batch(seeds: Sequence[int]) -> Any:
    batch = makers.make_batch and makers.make_batch(seeds)
    for wrap_batch, value in batched if batch else ():
      batch = wrap_batch(batch, value)
    return batch

  def refuse() -> Any:
    names = ', '.join(wrapper.option.name for wrapper, _ in chosen)
    raise ArgumentError(
      'name',
      f'expected a tensor environment without wrappers, got {names}. Leave '
      'them out, or choose a topology that does not compile environments.',
    )

  return makers._replace(
    make=make,
    make_batch=make_batch if len(batched) == len(chosen) else None,
    make_tensor=makers.make_tensor and refuse,
  )
