"""Base classes of agent configs."""

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from repertory.agents.interface import config_checks
from repertory.components.config import schedules, settings

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


# Settings that anneal others, and cannot be combined with schedules of these.
_ANNEALED = {
  'anneal_learner_steps': ('learning_rate', 'clip_epsilon'),
  'policy_anneal_learner_steps': ('learning_rate',),
  'importance_anneal_learner_steps': ('importance_exponent',),
}


def schedulable(config_class: type) -> tuple[str, ...]:
  """Returns the names of the fields that may have a schedule."""
  fields = {field.name for field in dataclasses.fields(config_class)}
  marked = [vars(one).get('schedulable', ()) for one in config_class.__mro__]
  return tuple(sorted(fields.intersection(itertools.chain(*marked))))


def _check_schedules(config: Any, found: dict[str, Any]) -> None:
  """Raises SettingError for schedules that the update would not follow."""
  known = schedulable(type(config))
  for name, schedule in found.items():
    if name not in known:
      raise settings.SettingError(
        name,
        'must be a constant, because it cannot change in a run, got '
        f'{schedule}. Settings that may have a schedule: {", ".join(known)}.',
      )
  for name, annealed in _ANNEALED.items():
    both = ', '.join(found.keys() & annealed)
    if both and getattr(config, name, None) is not None:
      raise settings.SettingError(
        name,
        f'must be None with a schedule of {both}, got {getattr(config, name)}.',
      )


def _checks_schedules(check: Callable[[Any], None]) -> Callable[[Any], None]:
  """Wraps `__post_init__` so that it sees only numbers of scheduled fields.

  It is called with all values of the schedules, in copies of the config.
  """

  @functools.wraps(check)
  def call(self):
    found = schedules.of_config(self)
    if not found:
      check(self)
      return
    _check_schedules(self, found)
    fractions = {0.0, 1.0}.union(*(one.fractions for one in found.values()))
    constant = self
    for fraction in sorted(fractions):
      numbers = {name: one.value(fraction) for name, one in found.items()}
      for name, number in numbers.items():
        # Steps and clipping ranges may end at 0, where nothing is learned.
        if not number and name.endswith(('learning_rate', 'clip_epsilon')):
          numbers[name] = max(map(abs, found[name].values)) or 1.0
      constant = copy.copy(self)
      vars(constant).update(numbers)
      check(constant)
    # Fields that the method derives.
    vars(self).update({**vars(constant), **found})

  return call


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
    schedulable: Names of fields, beside those of base classes, that may have a
      `schedules.Schedule`: those that only the update reads, as tensors or in
      optimizers. It finds variables in their place.
  """

  # Replay decorrelates batches, even from a single environment.
  default_environments_per_actor: ClassVar[int] = 1
  xla_pays_after: ClassVar[int] = 1_000
  schedulable: ClassVar[tuple[str, ...]] = ('learning_rate',)

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
    if '__post_init__' in vars(cls):
      cls.__post_init__ = _checks_schedules(cls.__post_init__)
    for name, changed in list(vars(cls).items()):
      if isinstance(changed, _Default):
        help_text = _inherited_help(cls, name).removesuffix('.')
        field = settings.field(changed.value, f'{help_text}{changed.note}.')
        setattr(cls, name, field)

  @property
  def steps_until_xla_pays(self) -> int:
    """Learner steps equivalent to `xla_pays_after` gradient steps."""
    return self.xla_pays_after

  @_checks_schedules
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

  schedulable: ClassVar[tuple[str, ...]] = ('adam_epsilon', 'max_gradient_norm')

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
class CoreConfig(AgentConfig):
  """Settings of a recurrent core, and of its observations."""

  core: config_checks.Core = settings.field(
    'none', "Recurrent core: 'none', 'lstm', 'gru' or 'gtrxl'."
  )
  core_size: config_checks.PositiveInt = settings.field(
    128, 'Output size of the recurrent core.'
  )
  core_layers: config_checks.PositiveInt | None = settings.field(
    None, "Layers of 'gtrxl', and of no other core; None for 2."
  )
  core_heads: config_checks.PositiveInt | None = settings.field(
    None,
    "Attention heads of 'gtrxl', and of no other core; they divide "
    '`core_size`. None for 4.',
  )
  core_window: config_checks.PositiveInt | None = settings.field(
    None,
    "Earlier steps in the memory of 'gtrxl', and of no other core; None for "
    '64.',
  )
  previous_action_and_reward: bool = settings.field(
    False, 'Include the previous action and reward in observations.'
  )

  def __post_init__(self):
    super().__post_init__()
    if self.core != 'gtrxl':
      for name in ('core_layers', 'core_heads', 'core_window'):
        config_checks.check(
          self,
          name,
          getattr(self, name) is None,
          f"None unless core is 'gtrxl', and it is {self.core!r}",
        )
    elif self.core_size % self.core_options['heads']:
      heads = self.core_options['heads']
      config_checks.check(
        self, 'core_size', False, f'a multiple of core_heads = {heads}'
      )

  @property
  def core_options(self) -> dict[str, int]:
    """Further arguments of `networks.make_core`."""
    if self.core != 'gtrxl':
      return {}
    return {
      'layers': self.core_layers or 2,
      'heads': self.core_heads or 4,
      'window': self.core_window or 64,
    }


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
