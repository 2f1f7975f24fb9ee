"""Callbacks of runs: observers, loggers and early stopping."""

from repertory.launch.experiments.callbacks.callback import (
  Callback,
  PerLabel,
  RowLogger,
  StopAtReturn,
)
from repertory.launch.experiments.callbacks.callback_list import (
  NONE,
  CallbackList,
  check,
  take,
)
from repertory.launch.experiments.callbacks.events import (
  DONE,
  FAILED,
  INTERRUPTED,
  STOPPED_EARLY,
  EndEvent,
  EpisodesEvent,
  EvaluationEvent,
  RunEvent,
)
from repertory.launch.experiments.callbacks.wandb_logger import WandB

__all__ = (
  'DONE',
  'FAILED',
  'INTERRUPTED',
  'NONE',
  'STOPPED_EARLY',
  'Callback',
  'CallbackList',
  'EndEvent',
  'EpisodesEvent',
  'EvaluationEvent',
  'PerLabel',
  'RowLogger',
  'RunEvent',
  'StopAtReturn',
  'WandB',
  'check',
  'take',
)
