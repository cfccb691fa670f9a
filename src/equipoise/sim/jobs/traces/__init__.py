"""Jobs that replay what the ranks of an MPI program computed and sent."""
