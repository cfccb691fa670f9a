"""VMs during an upgrade: VM batches (step 4), consolidation, scaling, restarts, reserves."""
