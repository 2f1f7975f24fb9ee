"""Labels of groups of runs: the agent, and settings that distinguish it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from repertory.agents.interface import registry

# Tables are long, and follow from the settings.
_DERIVED = 'table.'
_NUM_ENVIRONMENTS = 'num_environments'  # Mostly follows from other settings.
_BUILDER, _REWARD_MODEL = 'builder', 'reward_model'
_PLAIN_BY_THEMSELVES = ('topology', 'launch_type')
# Significant digits of floats, None for all; the first that distinguishes all
# groups is used.
_DIGITS = (4, 8, None)
# Floats of at most this number of characters are never rounded.
_SHORT = 8


class Named(NamedTuple):
  """Description of a group, from which its label is made.

  Attributes:
    agent: Name of the agent.
    environment: Name of the environment.
    settings: Common settings of its runs, by name.
  """

  agent: str
  environment: str | None
  settings: Mapping[str, Any]


def name(groups: Sequence[Named]) -> list[str]:
  """Names groups by agent, and by settings that differ on one environment.

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
    distinguishing = _find_distinguishing(own)
    texts = _describe_by_presets(agent, own, distinguishing, digits) or [
      [
        _describe(n, one.settings[n], digits)
        for n in distinguishing
        if n in one.settings
      ]
      for one in own
    ]
    for i, words in zip(indices, texts, strict=True):
      found[i] = ', '.join([agent, *words])
  return found


def differences(
  settings: Sequence[Mapping[str, Any]],
) -> dict[str, list[Any]]:
  """Returns the settings that differ, with the values of all mappings.

  Tables, which follow from other settings, are left out unless nothing else
  differs.
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
  """Serializes plain values, equal ones to equal text."""
  return json.dumps(value, sort_keys=True, default=str)


def _find_distinguishing(groups: Sequence[Named]) -> list[str]:
  """Returns the settings that distinguish groups of each environment.

  Settings that only some groups have, such as those of a topology, and the
  number of environments are included only if necessary.
  """
  by_environment: dict[str | None, list[Mapping[str, Any]]] = {}
  for group in groups:
    by_environment.setdefault(group.environment, []).append(group.settings)
  distinguishing: dict[str, None] = {}
  optional: dict[str, None] = {}
  for rivals in by_environment.values():
    for name in differences(rivals):
      values = [freeze(one[name]) for one in rivals if name in one]
      is_plain = len(set(values)) > 1 and name != _NUM_ENVIRONMENTS
      (distinguishing if is_plain else optional)[name] = None

  def are_distinguished(rivals):
    keys = [
      freeze({n: one[n] for n in distinguishing if n in one}) for one in rivals
    ]
    return len(set(keys)) == len(keys)

  if _REWARD_MODEL in distinguishing:  # Implies different builders.
    distinguishing.pop(_BUILDER, None)
  for name in optional:
    if not all(map(are_distinguished, by_environment.values())):
      distinguishing[name] = None
  return list(distinguishing)


def _describe_by_presets(
  agent: str,
  groups: Sequence[Named],
  distinguishing: Sequence[str],
  digits: int | None,
) -> list[list[str]] | None:
  """Describes groups of one agent by presets and differences from them.

  Returns:
    The words of each group; None if no preset shortens them.
  """
  known = {one.name: one for one in registry.agents()}
  if agent not in known:
    return None  # Does not import user modules just to name a curve.
  defaults = {one.name: one.default for one in registry.settings(agent)}

  def describe(preset, settings):
    own = known[agent].presets[preset] if preset else {}
    usual = {**defaults, **own}
    differs = [
      _describe(n, settings[n], digits)
      for n in dict.fromkeys([*distinguishing, *own])
      if n in settings
      and (n not in usual or freeze(usual[n]) != freeze(settings[n]))
    ]
    return [f'preset={preset}', *differs] if preset else differs

  texts = [
    # No preset comes first, so it wins ties.
    min(
      (describe(n, one.settings) for n in ('', *known[agent].presets)), key=len
    )
    for one in groups
  ]
  return texts if any(map(_has_preset, texts)) else None


def _has_preset(words: Sequence[str]) -> bool:
  return bool(words) and words[0].startswith('preset=')


def _describe(name: str, value: Any, digits: int | None) -> str:
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
