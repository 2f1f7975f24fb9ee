"""Wrappers of single environments."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.environments.wrappers.channels_last import ChannelsLast
  from repertory.environments.wrappers.environment_wrapper import (
    EnvironmentWrapper,
  )
  from repertory.environments.wrappers.frame_stack import FrameStack
  from repertory.environments.wrappers.single_precision import SinglePrecision
  from repertory.environments.wrappers.step_limit import StepLimit

__all__ = (
  'ChannelsLast',
  'EnvironmentWrapper',
  'FrameStack',
  'SinglePrecision',
  'StepLimit',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
