"""The commands about plans: solve makes one, check judges one."""
