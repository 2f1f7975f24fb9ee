"""MinAtar games in TensorFlow, without the package `minatar`."""

from repertory.environments.tensor.minatar.asterix import Asterix
from repertory.environments.tensor.minatar.breakout import Breakout
from repertory.environments.tensor.minatar.freeway import Freeway
from repertory.environments.tensor.minatar.seaquest import Seaquest
from repertory.environments.tensor.minatar.space_invaders import SpaceInvaders

__all__ = ['Asterix', 'Breakout', 'Freeway', 'Seaquest', 'SpaceInvaders']
