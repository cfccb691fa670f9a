"""What happens to an object before it is stored: its types, its defaults, its rules."""
