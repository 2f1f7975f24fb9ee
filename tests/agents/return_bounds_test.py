"""Tests of the return bounds of builders."""

import pytest

from repertory.agents import crr, d4pg, dqn, iql, mpo
from repertory.agents.reward_models import sqil

_BOUNDS = {'vmin': -3.0, 'vmax': 4.0}
_CATEGORICAL = {**_BOUNDS, 'distribution': 'categorical'}


@pytest.mark.parametrize(
  ('builder', 'expected'),
  [
    (crr.CRRBuilder(crr.CRRConfig(**_BOUNDS)), (-3, 4)),
    (d4pg.D4PGBuilder(d4pg.D4PGConfig(**_BOUNDS)), (-3, 4)),
    (mpo.MPOBuilder(mpo.MPOConfig(**_CATEGORICAL)), (-3, 4)),
    (mpo.MPOBuilder(mpo.MPOConfig(**_BOUNDS)), None),
    (dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL)), (-3, 4)),
    (dqn.DQNBuilder(dqn.DQNConfig(**_BOUNDS)), None),
    # Their returns are not those of the environment's rewards.
    (
      dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL, max_abs_reward=1.0)),
      None,
    ),
    (
      sqil.SQILBuilder(dqn.DQNBuilder(dqn.DQNConfig(**_CATEGORICAL))),
      None,
    ),
    (iql.IQLBuilder(), None),
  ],
)
def test_bounds(builder, expected):
  assert builder.return_bounds == expected
