"""Settings that several agents declare with the same default and source."""

from repertory.components.config import settings


def image_torso(networks: str = '') -> str:
  """Declares the name of the convolutional torso.

  Args:
    networks: Networks that have separate torsos, for the description; empty for
      a single network.
  """
  separate = f'; {networks} have separate ones' if networks else ''
  return settings.field(
    'auto',
    "Convolutional torso for images: 'nature', 'residual', 'data_efficient', "
    "'minatar', or 'auto' to choose by image size; see docs/environments.md"
    f'{separate}.',
  )


def adam_epsilon() -> float:
  """Declares ε of Adam, with the default of its paper."""
  return settings.field(
    1e-8, 'ε of Adam, added to the denominator: arXiv:1412.6980.'
  )
