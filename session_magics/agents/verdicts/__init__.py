"""What a command, a path or an address would do, and whether it may be approved without asking."""
