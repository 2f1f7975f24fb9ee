"""Tests of Terminal."""

import contextlib
import io

import numpy as np

from repertory.components import loggers


def test_lines():
  stream = io.StringIO()
  logger = loggers.Terminal('learner', stream)
  logger.write({'steps': 1234567, 'loss': np.float32(0.123456)})
  logger.write({'note': 'one\ntwo', 'nothing': None, 'rate': 1652.34})
  logger.close()
  assert stream.getvalue() == (
    'learner: steps 1234567 | loss 0.123456\n'
    'learner: note one two | nothing None | rate 1652.34\n'
  )
  assert not stream.closed


def test_standard_output_at_the_time_of_writing():
  logger = loggers.Terminal('actor')
  stream = io.StringIO()
  with contextlib.redirect_stdout(stream):
    logger.write({'steps': 1})
  assert stream.getvalue() == 'actor: steps 1\n'
