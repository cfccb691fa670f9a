"""What a request asks for and what answers it: one module for each kind of verb."""
