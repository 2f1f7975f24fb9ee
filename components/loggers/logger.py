"""What every logger is: Acme's interface."""

from acme.utils.loggers.base import Logger

__all__ = ('Logger',)
