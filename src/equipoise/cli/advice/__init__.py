"""The commands that recommend actions and execute nothing: recommend, place, whatif."""
