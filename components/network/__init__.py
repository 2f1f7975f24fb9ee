"""Addresses, connections and caller identity of servers of a run."""
