"""Callbacks of runs: observers, loggers and early stopping."""

from repertory.launch.hooks.carried import NONE, Hooks, take
from repertory.launch.hooks.checks import check
from repertory.launch.hooks.events import (
  DONE,
  FAILED,
  INTERRUPTED,
  STOPPED_EARLY,
  End,
  Episodes,
  Evaluation,
  Run,
)
from repertory.launch.hooks.observer import Observer
from repertory.launch.hooks.row_logger import PerLabel, RowLogger
from repertory.launch.hooks.stop_at_return import StopAtReturn
from repertory.launch.hooks.wandb_logger import WandB

__all__ = (
  'DONE',
  'FAILED',
  'INTERRUPTED',
  'NONE',
  'STOPPED_EARLY',
  'End',
  'Episodes',
  'Evaluation',
  'Hooks',
  'Observer',
  'PerLabel',
  'RowLogger',
  'Run',
  'StopAtReturn',
  'WandB',
  'check',
  'take',
)
