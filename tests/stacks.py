"""Which of the two sets of versions the tests run with."""

import importlib.util

NO_LAUNCHPAD = 'about Launchpad, of which there is none for this Python'
HAS_LAUNCHPAD = importlib.util.find_spec('launchpad') is not None
