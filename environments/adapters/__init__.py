"""Adapters of other environment libraries."""
