"""Reference implementation of `random_streams` for one row."""

_MASK = 2**64 - 1


class Stream:
  """SplitMix64, https://doi.org/10.1145/2714064.2660195, in Python integers."""

  def __init__(self, counter):
    self._counter = int(counter)

  def draw(self, size):
    """Returns numbers as `next_uniform_vectors` orders them."""
    words = [self.next_bits() for _ in range((size + 1) // 2)]
    highs = [(word >> 40) / 2**24 for word in words]
    lows = [(word & (2**24 - 1)) / 2**24 for word in words]
    return (highs + lows)[:size]

  def next_bits(self):
    """Returns 64 bits as an integer."""
    self._counter = (self._counter + 0x9E3779B97F4A7C15) & _MASK
    z = self._counter
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
