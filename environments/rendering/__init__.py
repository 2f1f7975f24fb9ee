"""Images of environments."""
