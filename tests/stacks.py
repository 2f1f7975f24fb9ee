"""Which of the two sets of versions the tests run with."""

import importlib.util

NO_LAUNCHPAD = 'about Launchpad, of which there is none for this Python'
HAS_LAUNCHPAD = importlib.util.find_spec('launchpad') is not None

# By version of Python, the file with the versions of all packages.
CONSTRAINTS = {'3.10': 'constraints.txt', '3.11': 'constraints-3.11.txt'}
