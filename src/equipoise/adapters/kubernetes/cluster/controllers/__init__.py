"""The controllers of a simulated cluster, as far as schedulers and their users need them."""
