"""The settings that every agent has."""

import dataclasses
from typing import ClassVar

from repertory.agents import config_checks
from repertory.components import settings


@dataclasses.dataclass(frozen=True)
class AgentConfig:
  """Settings of an agent: a frozen dataclass that checks itself.

  An agent adds fields of its own, and declares those anew whose default is its
  own business or another one; `components.settings.field` gives a field the
  help that the command line and the docs print. All fields go into the
  checkpoint, and a run is resumed only if they are the same.

  Attributes:
    batch_size: Items a learner step takes; None if that follows from the number
      of environments.
    discount: γ.
    learning_rate: Step size of the optimizer.
    default_environments_per_actor: Environments that an actor steps together if
      nothing is said; no setting, but the agent's advice.
    xla_pays_after: Updates of one batch with which XLA has earned back what it
      takes to compile, about; measured with the defaults, on one core. No
      setting.
  """

  # What replays has seen all of it often, whoever lived it.
  default_environments_per_actor: ClassVar[int] = 1
  xla_pays_after: ClassVar[int] = 1_000

  batch_size: int | None
  discount: float
  learning_rate: float
  prefetch: int = settings.field(
    1, 'Batches that a replay server prepares ahead of the learner.'
  )
  variable_update_period: int = settings.field(
    10,
    "An actor's steps between fetches of variables, where it fetches them: in "
    'distributed.',
  )
  jit_compile: bool | None = settings.field(
    None,
    'Compile the update with XLA, and a recurrent policy (beside an '
    'accelerator any policy): up to half the work for a CPU with small '
    'networks; with idle cores graph mode may be done sooner, and convolutions '
    'are better off without. None: if the run has updates enough to earn back '
    'what it takes to compile; and beside an accelerator, in anakin and in '
    'deterministic runs.',
  )

  @property
  def steps_until_xla_pays(self) -> int:
    """Learner steps that have as many updates as `xla_pays_after`."""
    return self.xla_pays_after

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_at_least(
      self, 1, 'batch_size', 'variable_update_period'
    )
    config_checks.check_at_least(self, 0, 'prefetch')
    config_checks.check_fraction(self, 'discount')
    config_checks.check_positive(self, 'learning_rate')
