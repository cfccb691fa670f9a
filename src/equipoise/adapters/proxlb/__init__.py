"""ProxLB: the engines of ProxLB under test, and as a peer of our balancer."""
