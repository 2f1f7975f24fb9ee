"""Wrappers of single environments."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.environments.wrappers.environment_wrapper import (
    EnvironmentWrapper,
    StepLimit,
  )
  from repertory.environments.wrappers.images import ChannelsLast, FrameStack
  from repertory.environments.wrappers.single_precision import SinglePrecision

__all__ = (
  'ChannelsLast',
  'EnvironmentWrapper',
  'FrameStack',
  'SinglePrecision',
  'StepLimit',
)

__getattr__, __dir__ = lazy_imports.modules(__name__)
