"""What runs in the nodes of a program."""
