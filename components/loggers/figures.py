"""Human-readable numbers and durations."""

import math

_UNITS = ('', ' k', ' M', ' G', ' T')


def number(value: float) -> str:
  """Formats a number with three significant digits and a unit: `12.3 k`.

  Integers below a thousand stay exact.
  """
  if isinstance(value, int) and abs(value) < 1000:
    return str(value)
  if not math.isfinite(value):
    return str(float(value))
  if value != 0 and abs(value) < 1e-3:
    return f'{value:.1e}'
  scaled = float(value)
  for unit in _UNITS[:-1]:
    # 999.5 would get four digits: it belongs to the next unit.
    if abs(scaled) < 999.5:
      return _three_digits(scaled) + unit
    scaled /= 1000
  return _three_digits(scaled) + _UNITS[-1]


def _three_digits(value: float) -> str:
  digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
  return f'{value:.{digits}f}'


def duration(seconds: float) -> str:
  """Formats a duration with its two largest units: `1 h 02 m`."""
  if not math.isfinite(seconds):
    return str(float(seconds))
  if seconds < 9.95:
    return f'{seconds:.1f} s'
  whole = round(seconds)
  minutes, hours, days = whole // 60, whole // 3600, whole // 86400
  if days:
    return f'{days} d {hours % 24:02d} h'
  if hours:
    return f'{hours} h {minutes % 60:02d} m'
  if minutes:
    return f'{minutes} m {whole % 60:02d} s'
  return f'{whole} s'
