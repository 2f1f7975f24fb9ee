"""Wrappers of single environments and of batches."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.environments.wrappers.action_mask import ActionMask
  from repertory.environments.wrappers.actions import (
    ActionRepeat,
    DiscretizedActions,
    RescaledActions,
  )
  from repertory.environments.wrappers.environment_wrapper import (
    EnvironmentWrapper,
    StepLimit,
  )
  from repertory.environments.wrappers.images import (
    BatchFrameStack,
    ChannelsLast,
    FrameStack,
    channels_last,
    grayscale,
    resize,
  )
  from repertory.environments.wrappers.observations import (
    ChangedBatch,
    ChangedObservations,
    flatten,
    keeping_masks,
    observe_mask,
  )
  from repertory.environments.wrappers.single_precision import SinglePrecision

__all__ = (
  'ActionMask',
  'ActionRepeat',
  'BatchFrameStack',
  'ChangedBatch',
  'ChangedObservations',
  'ChannelsLast',
  'DiscretizedActions',
  'EnvironmentWrapper',
  'FrameStack',
  'RescaledActions',
  'SinglePrecision',
  'StepLimit',
  'channels_last',
  'flatten',
  'grayscale',
  'keeping_masks',
  'observe_mask',
  'resize',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
