"""The Behaviour Suite: small experiments on what an agent can do."""

import inspect
import urllib.error
from typing import Any

import dm_env

from repertory.environments import close_names, extras
from repertory.environments import seeds as seeds_lib
from repertory.environments.argument_checks import ArgumentError
from repertory.environments.wrappers import single_precision


def ids() -> list[str]:
  """Returns the ids of all settings, such as 'catch/0'.

  Raises:
    ImportError: If bsuite is not installed.
  """
  return list(extras.import_extra('bsuite.sweep', 'bsuite').SWEEP)


def make(bsuite_id: str, seed: int) -> dm_env.Environment:
  """Makes the environment of a setting, without bsuite's records.

  All episodes end with discount 0, also those that a time limit ends: bsuite
  does not tell them apart.

  Args:
    bsuite_id: See `ids`; those of mnist download their pictures.
    seed: At least 0. It takes the place of the setting's own seed, but not of
      the seed of what the actions mean, which is part of the experiment.

  Returns:
    An environment of single precision.

  Raises:
    ImportError: If bsuite is not installed.
    ValueError: If there is no such setting, or its pictures do not come.
  """
  close_names.check('id', bsuite_id, ids())
  seed = seeds_lib.fold(seed)
  settings: dict[str, Any] = dict(
    extras.import_extra('bsuite.sweep', 'bsuite').SETTINGS[bsuite_id]
  )
  experiment = bsuite_id.partition('/')[0]
  bsuite = extras.import_extra('bsuite.bsuite', 'bsuite')
  load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT[experiment]
  if experiment == 'deep_sea_stochastic':
    # Its loader adds this, and leaves the seed to chance.
    load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT['deep_sea']
    settings['deterministic'] = False
  if 'seed' in inspect.signature(load).parameters:
    settings['seed'] = seed
  try:
    environment = load(**settings)
  except urllib.error.URLError as error:
    raise ArgumentError(
      'id',
      'expected a setting whose pictures can be downloaded, got'
      f' {bsuite_id!r}: {error}. Try again with a connection, or take another.',
    ) from error
  return single_precision.SinglePrecision(environment)
