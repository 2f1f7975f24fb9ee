"""Base classes of agent configs."""

import dataclasses
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from repertory.agents.interface import config_checks
from repertory.components.config import settings

T = TypeVar('T')


class _Default(NamedTuple):
  """Changed default of an inherited setting, see `default`."""

  value: Any
  note: str


def default(value: T, note: str = '') -> T:
  """Redeclares an inherited setting with another default.

    n_step: int = agent_config.default(3, ': Rainbow, table 1')

  Args:
    value: The default, immutable.
    note: Text that is appended to the inherited description, such as the source
      of the default.
  """
  changed: Any = _Default(value, note)
  return changed


def required(help_text: str) -> Any:
  """Declares a setting without a default, with its description."""
  return dataclasses.field(metadata={'help': help_text})


# Help of the field `image_torso`.
IMAGE_TORSO = (
  "Convolutional torso for images, one for each network: 'nature', 'residual', "
  "'data_efficient', 'minatar', or 'auto' to choose by image size; see "
  'docs/environments.md.'
)


@dataclasses.dataclass(frozen=True)
class AgentConfig:
  """Agent config: a frozen dataclass that validates itself.

  Agents add their own fields and redeclare fields to set or change defaults.
  `settings.field` adds the help text for command line and docs, and `default`
  keeps an inherited one. All fields are saved in checkpoints; a run resumes
  only if they are unchanged.

  Attributes:
    default_environments_per_actor: Default number of environments per actor;
      a recommendation of the agent, not a setting.
    xla_pays_after: Approximate number of gradient steps after which XLA has
      saved its compilation time, with the defaults on one core; not a setting.
  """

  # Replay decorrelates batches, even from a single environment.
  default_environments_per_actor: ClassVar[int] = 1
  xla_pays_after: ClassVar[int] = 1_000

  # None to derive it from the number of environments.
  batch_size: int | None = required('Items per gradient step.')
  discount: float = required('Discount factor γ.')
  learning_rate: float = required('Learning rate of Adam.')
  prefetch: config_checks.NonNegativeInt = settings.field(
    1, 'Number of batches that the replay server prefetches.'
  )
  variable_update_period: config_checks.PositiveInt = settings.field(
    10,
    'Actor steps between fetches of variables, in the distributed topology.',
  )
  normalize_observations: bool = settings.field(
    False,
    'Normalize observations, except images and discrete ones, by their running '
    'mean and standard deviation, and clip them to ±10.',
  )
  normalize_rewards: bool = settings.field(
    False,
    'Divide rewards by the running standard deviation of returns.',
  )
  jit_compile: bool | None = settings.field(
    None,
    'Compile the update with XLA, and recurrent policies (on accelerators, '
    'all policies). For small networks on a CPU, XLA takes up to half the work '
    'away; graph mode can be faster with idle cores or for convolutions. None: '
    'if the run is long enough to save the compilation time, on accelerators, '
    'and in anakin and deterministic runs.',
  )

  def __init_subclass__(cls, **kwargs: Any):
    super().__init_subclass__(**kwargs)
    for name, changed in list(vars(cls).items()):
      if isinstance(changed, _Default):
        help_text = _inherited_help(cls, name).removesuffix('.')
        field = settings.field(changed.value, f'{help_text}{changed.note}.')
        setattr(cls, name, field)

  @property
  def steps_until_xla_pays(self) -> int:
    """Learner steps equivalent to `xla_pays_after` gradient steps."""
    return self.xla_pays_after

  def __post_init__(self):
    config_checks.check_fields(self)
    config_checks.check_at_least(self, 1, 'batch_size')
    config_checks.check_fraction(self, 'discount')
    config_checks.check_positive(self, 'learning_rate')


def _inherited_help(config_class: type, name: str) -> str:
  for base in filter(dataclasses.is_dataclass, config_class.__mro__[1:]):
    for field in dataclasses.fields(base):
      if field.name == name:
        return field.metadata['help']
  raise TypeError(f'{name} of {config_class.__name__} must be inherited.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkConfig(AgentConfig):
  """Settings of networks and of their optimizer."""

  # A config lists this and the classes below after bases that redeclare fields
  # of `AgentConfig`: the first base with a field determines it.

  hidden_sizes: config_checks.Sizes = settings.field(
    (256, 256), 'Hidden layer sizes of each network.'
  )
  image_torso: config_checks.ImageTorso = settings.field('auto', IMAGE_TORSO)
  adam_epsilon: config_checks.PositiveFloat = settings.field(
    1e-8, 'ε of Adam, added to the denominator: arXiv:1412.6980.'
  )
  max_gradient_norm: config_checks.PositiveFloat | None = settings.field(
    None,
    "Maximum global norm of each network's gradients; None for no clipping.",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CategoricalConfig(AgentConfig):
  """Settings of a categorical distribution of returns."""

  num_atoms: Annotated[int, config_checks.at_least(2)] = settings.field(
    51,
    'Atoms of a categorical distribution of returns: C51, arXiv:1707.06887, '
    'section 5.',
  )
  vmin: config_checks.FiniteFloat = settings.field(
    -150.0,
    'Smallest atom of a categorical distribution, the least return it can '
    'represent; values beyond are clipped, and data sets with returns beyond '
    'are rejected. Acme has ±150, for rewards in [−1, 1].',
  )
  vmax: config_checks.FiniteFloat = settings.field(
    150.0,
    'Largest atom of a categorical distribution, the greatest return it can '
    'represent.',
  )

  def __post_init__(self):
    super().__post_init__()
    config_checks.check(
      self,
      'vmax',
      0 < self.vmax - self.vmin <= config_checks.MAX,
      f'above vmin = {self.vmin}, by a finite number',
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EpsilonConfig(AgentConfig):
  """Settings of ε-greedy exploration."""

  epsilon_base: float = settings.field(
    0.4,
    'Largest ε of the ladder over environments: Ape-X, arXiv:1803.00933, '
    'section 4.1.',
  )
  epsilon_exponent: config_checks.NonNegativeFloat = settings.field(
    7.0, 'Steepness of the ladder: Ape-X, section 4.1.'
  )
  epsilon_anneal_steps: config_checks.NonNegativeInt = settings.field(
    3_000,
    'Steps, over all environments, over which ε decays linearly from 1 to its '
    'final value, as in Nature DQN, scaled down to small environments.',
  )
  evaluation_epsilon: config_checks.Fraction = settings.field(
    0.0, 'ε in evaluation.'
  )

  def __post_init__(self):
    super().__post_init__()
    self._check_epsilon_base()

  def _check_epsilon_base(self) -> None:
    is_valid = 0 < self.epsilon_base <= 1
    config_checks.check(self, 'epsilon_base', is_valid, 'in (0, 1]')
