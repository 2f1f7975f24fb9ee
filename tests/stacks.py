"""Which of the two sets of versions the tests run with."""

import importlib.util

import pytest

NO_LAUNCHPAD = 'about Launchpad, of which there is none for this Python'
HAS_LAUNCHPAD = importlib.util.find_spec('launchpad') is not None

needs_launchpad = pytest.mark.skipif(not HAS_LAUNCHPAD, reason=NO_LAUNCHPAD)
