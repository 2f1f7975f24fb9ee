"""Rows of a run on Weights & Biases."""


class WandB:
  pass
