"""Action specs, their scaling and discretization."""
