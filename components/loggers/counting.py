"""Counts of steps and episodes: Acme's counter, re-exported."""

from acme.utils import counting as acme_counting

Counter = acme_counting.Counter
