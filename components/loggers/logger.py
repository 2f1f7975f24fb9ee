"""Interface of loggers, Acme's."""

from acme.utils.loggers.base import Logger

__all__ = ('Logger',)
