"""SimGrid in a process of its own: it computes how long parallel tasks take."""
