"""What the display and the logs show of tables, servers and evaluations."""

from collections.abc import Mapping, Sequence

from repertory.components import loggers, replay


def list_tables(
  tables: Mapping[str, replay.TableStatus],
) -> tuple[loggers.TableStatus, ...]:
  """Returns what is shown of each table."""
  return tuple(
    loggers.TableStatus(
      name, table.size, table.max_size, table.waiting, table.inserts
    )
    for name, table in tables.items()
  )


def list_inference(
  servers: Mapping[str, Mapping[str, float]],
) -> tuple[loggers.InferenceStatus, ...]:
  """Returns what is shown of each inference server.

  Args:
    servers: Their figures, by the name of the node.
  """
  return tuple(
    loggers.InferenceStatus(
      name=name,
      rows_per_second=row['rows_per_second'],
      rows_per_batch=row['rows_per_batch'],
      fill=row['fill'],
      wait_ms=row['wait_ms_p50'],
      run_ms=row['run_ms_p50'],
      transport_ms=row['transport_ms_p50'],
      adding_share=row['adding_share'],
    )
    for name, row in sorted(servers.items())
  )


def summarize_episodes(
  returns: Sequence[float], lengths: Sequence[int]
) -> dict[str, float]:
  """Returns the row of an evaluation: returns and lengths of its episodes."""
  mean = sum(returns) / len(returns)
  variance = sum((r - mean) ** 2 for r in returns) / len(returns)
  return {
    'episode_return': mean,
    'episode_return_deviation': variance**0.5,
    'episode_return_min': min(returns),
    'episode_return_max': max(returns),
    'episode_length': sum(lengths) / len(lengths),
    'count': len(returns),
  }


def achieved_ratio(
  table: replay.TableStatus, limit: replay.RateLimit
) -> float | None:
  """Returns samples / (inserts − min_size); None before the first sample."""
  beyond = table.inserts - limit.min_size
  return table.samples / beyond if beyond > 0 and table.samples else None
