"""What an experiment needs to run as one compiled program."""

from collections.abc import Sequence
from typing import Any

from repertory.agents import builder as builder_lib
from repertory.components import adders, experience as experience_lib
from repertory.components import roads, rollouts
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib


def check(experiment: experiment_lib.Experiment) -> None:
  pass
