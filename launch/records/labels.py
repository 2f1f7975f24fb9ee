"""What groups of runs are called: the agent, and what tells it from others."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.agents import registry

# Tables are long, and follow from the settings.
_DERIVED = 'table.'
# Goes along with other settings, mostly.
_NUM_ENVIRONMENTS = 'num_environments'
_BUILDER, _WRAP = 'builder', 'wrap'
_PLAIN_BY_THEMSELVES = ('topology', 'launch_type')
# Significant digits of floats, None for all; the first that distinguishes all
# groups is used.
_DIGITS = (4, 8, None)
# Floats of at most this number of characters are never rounded.
_SHORT = 8


class Named(NamedTuple):
  """What is to be named.

  Attributes:
    agent: Name of the agent.
    environment: Name of the environment.
    settings: All that its runs have in common, by name.
  """

  agent: str
  environment: str | None
  settings: Mapping[str, Any]


def name(groups: Sequence[Named]) -> list[str]:
  """Names groups by their agents, and by what differs on one environment.

  Settings of a preset of the agent are replaced by the preset's name. Floats
  are rounded if the names remain different.
  """
  *rounded, whole = (_name(groups, digits) for digits in _DIGITS)
  for names in rounded:
    if len(set(names)) == len(set(whole)):
      return names
  return whole


def _name(groups: Sequence[Named], digits: int | None) -> list[str]:
  found = [''] * len(groups)
  for agent in {group.agent for group in groups}:
    indices = [i for i, group in enumerate(groups) if group.agent == agent]
    own = [groups[i] for i in indices]
    telling = _find_telling(own)
    texts = _tell_presets(agent, own, telling, digits) or [
      [_tell(n, one.settings[n], digits) for n in telling if n in one.settings]
      for one in own
    ]
    for i, words in zip(indices, texts, strict=True):
      found[i] = ', '.join([agent, *words])
  return found


def differences(
  settings: Sequence[Mapping[str, Any]],
) -> dict[str, list[Any]]:
  """Returns what differs between mappings: by name, the value of each.

  Tables are left out, which follow from the rest, unless nothing else differs.
  """
  names = dict.fromkeys(name for one in settings for name in one)
  found = {}
  for name in names:
    values = [one.get(name) for one in settings]
    if any(value != values[0] for value in values):
      found[name] = values
  plain = {n: v for n, v in found.items() if not n.startswith(_DERIVED)}
  return plain or found


def freeze(value: Any) -> str:
  """Returns a text that is the same for equal plain values."""
  return json.dumps(value, sort_keys=True, default=str)


def _find_telling(groups: Sequence[Named]) -> list[str]:
  """Returns the settings by which those of each place can be told apart.

  What only some of them have at all, such as settings of a topology, and the
  number of environments are among them only if they need to be.
  """
  places: dict[str | None, list[Mapping[str, Any]]] = {}
  for group in groups:
    places.setdefault(group.environment, []).append(group.settings)
  telling: dict[str, None] = {}
  optional: dict[str, None] = {}
  for rivals in places.values():
    for name in differences(rivals):
      values = [freeze(one[name]) for one in rivals if name in one]
      is_plain = len(set(values)) > 1 and name != _NUM_ENVIRONMENTS
      (telling if is_plain else optional)[name] = None

  def are_told_apart(rivals):
    keys = [freeze({n: one[n] for n in telling if n in one}) for one in rivals]
    return len(set(keys)) == len(keys)

  if _WRAP in telling:  # Builders that wrap differ by that.
    telling.pop(_BUILDER, None)
  for name in optional:
    if not all(map(are_told_apart, places.values())):
      telling[name] = None
  return list(telling)


def _tell_presets(
  agent: str,
  groups: Sequence[Named],
  telling: Sequence[str],
  digits: int | None,
) -> list[list[str]] | None:
  """Tells groups of one agent by presets, and by what differs from these.

  Returns:
    None if no preset makes that shorter.
  """
  known = {one.name: one for one in registry.agents()}
  if agent not in known:
    return None  # Somebody's own module is not imported to name a curve.
  defaults = {one.name: one.default for one in registry.settings(agent)}

  def tell(preset, settings):
    own = known[agent].presets[preset] if preset else {}
    usual = {**defaults, **own}
    differs = [
      _tell(n, settings[n], digits)
      for n in dict.fromkeys([*telling, *own])
      if n in settings
      and (n not in usual or freeze(usual[n]) != freeze(settings[n]))
    ]
    return [f'preset={preset}', *differs] if preset else differs

  told = [
    # Of equally short ones the first, which is none.
    min((tell(n, one.settings) for n in ('', *known[agent].presets)), key=len)
    for one in groups
  ]
  return told if any(map(_has_preset, told)) else None


def _has_preset(words: Sequence[str]) -> bool:
  return bool(words) and words[0].startswith('preset=')


def _tell(name: str, value: Any, digits: int | None) -> str:
  if name in _PLAIN_BY_THEMSELVES:
    return str(value)
  if isinstance(value, (list, tuple)):
    value = ','.join(_round(one, digits) for one in value)
  if isinstance(value, bool):
    value = str(value).lower()
  return f'{name}={_round(value, digits)}'


def _round(value: Any, digits: int | None) -> str:
  text = str(value)
  if digits and isinstance(value, float) and len(text) > _SHORT:
    return f'{value:.{digits}g}'
  return text
