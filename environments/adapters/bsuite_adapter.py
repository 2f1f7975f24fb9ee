"""Environments of the Behaviour Suite (bsuite)."""

import inspect
import urllib.error
from collections.abc import Mapping
from typing import Any

import dm_env

from repertory.environments.adapters import extras
from repertory.environments.values import argument_checks


def make(
  bsuite_id: str, settings: Mapping[str, Any], seed: int
) -> dm_env.Environment:
  """Makes an environment without bsuite's logging.

  All episodes end with discount 0, also those that a time limit ends: bsuite
  does not distinguish the two.

  Args:
    bsuite_id: Such as 'catch/0'; those of mnist download their images.
    settings: Empty: there are no options.
    seed: At least 0. It replaces the seed of the bsuite id, except for the seed
      of the action mapping, which is part of the experiment.

  Raises:
    ImportError: If bsuite is not installed.
    ValueError: If the id is unknown, or its images cannot be downloaded.
  """
  del settings
  sweep = extras.import_extra('bsuite.sweep', 'bsuite')
  argument_checks.check_known('id', bsuite_id, list(sweep.SWEEP))
  seed = argument_checks.fold_seed(seed)
  arguments: dict[str, Any] = dict(sweep.SETTINGS[bsuite_id])
  experiment = bsuite_id.partition('/')[0]
  bsuite = extras.import_extra('bsuite.bsuite', 'bsuite')
  load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT[experiment]
  if experiment == 'deep_sea_stochastic':
    # Its loader sets `deterministic`, but with a random seed.
    load = bsuite.EXPERIMENT_NAME_TO_ENVIRONMENT['deep_sea']
    arguments['deterministic'] = False
  if 'seed' in inspect.signature(load).parameters:
    arguments['seed'] = seed
  try:
    return load(**arguments)
  except urllib.error.URLError as error:
    raise argument_checks.ArgumentError(
      'id',
      'expected an id whose images can be downloaded, got'
      f' {bsuite_id!r}: {error}. Connect to the network, or use another id.',
    ) from error
