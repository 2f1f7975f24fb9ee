"""Wrappers of single environments."""

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
