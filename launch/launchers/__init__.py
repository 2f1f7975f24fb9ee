"""What hosts the nodes of a program."""
