"""What is known of a run as a whole, and who may do what."""
