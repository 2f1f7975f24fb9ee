"""Base class of agent configs."""

import dataclasses
from typing import ClassVar

from repertory.agents.interface import config_checks
from repertory.components.config import settings


@dataclasses.dataclass(frozen=True)
class AgentConfig:
  """Agent config: a frozen dataclass that validates itself.

  Agents add their own fields and redeclare fields to set or change defaults.
  `settings.field` adds the help text for command line and docs. All fields are
  saved in checkpoints; a run resumes only if they are unchanged.

  Attributes:
    batch_size: Items per batch; None to derive it from the number of
      environments.
    discount: Discount factor γ.
    learning_rate: Learning rate of the optimizer.
    default_environments_per_actor: Default number of environments per actor;
      a recommendation of the agent, not a setting.
    xla_pays_after: Approximate number of gradient steps after which XLA has
      saved its compilation time, with the defaults on one core; not a setting.
  """

  # Replay decorrelates batches, even from a single environment.
  default_environments_per_actor: ClassVar[int] = 1
  xla_pays_after: ClassVar[int] = 1_000

  batch_size: int | None
  discount: float
  learning_rate: float
  prefetch: int = settings.field(
    1, 'Number of batches that the replay server prefetches.'
  )
  variable_update_period: int = settings.field(
    10,
    'Actor steps between fetches of variables, in the distributed topology.',
  )
  jit_compile: bool | None = settings.field(
    None,
    'Compile the update with XLA, and recurrent policies (on accelerators, '
    'all policies). For small networks on a CPU, XLA takes up to half the work '
    'away; graph mode can be faster with idle cores or for convolutions. None: '
    'if the run is long enough to save the compilation time, on accelerators, '
    'and in anakin and deterministic runs.',
  )

  @property
  def steps_until_xla_pays(self) -> int:
    """Learner steps equivalent to `xla_pays_after` gradient steps."""
    return self.xla_pays_after

  def __post_init__(self):
    config_checks.check_types(self)
    config_checks.check_at_least(
      self, 1, 'batch_size', 'variable_update_period'
    )
    config_checks.check_at_least(self, 0, 'prefetch')
    config_checks.check_fraction(self, 'discount')
    config_checks.check_positive(self, 'learning_rate')
