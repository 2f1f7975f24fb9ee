"""Categorical distributions over atoms in NumPy, from arXiv:1707.06887."""

import numpy as np


def softmax(x):
  powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
  return powers / np.sum(powers, axis=-1, keepdims=True)


def support(config):
  return np.linspace(config.vmin, config.vmax, config.num_atoms)


def project(reward, discount, probs, atoms):
  """Projects a distribution onto the atoms: equation 7.

  Args:
    reward, discount: `[B]`.
    probs: Probabilities of the next state's atoms, `[B, N]`.
    atoms: `[N]`.
  """
  spacing, found = atoms[1] - atoms[0], np.zeros_like(probs)
  for b in range(len(probs)):
    for z, p in zip(atoms, probs[b]):
      moved = np.clip(reward[b] + discount[b] * z, atoms[0], atoms[-1])
      found[b] += p * np.maximum(0, 1 - np.abs(moved - atoms) / spacing)
  return found


def divergences(target, probs):
  """Σ_i p_i log(p_i / q_i) of each row."""
  terms = np.where(target > 0, target, 1) / probs
  return np.sum(target * np.log(terms), axis=-1)
