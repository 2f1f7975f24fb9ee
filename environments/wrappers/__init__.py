"""Wrappers of single environments."""

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
