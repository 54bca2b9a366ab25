"""What a session is: entries, messages, the tree they form. Pure values and functions, no I/O."""
