"""Description of an experiment: what users write."""
