"""Nova: the scheduler of OpenStack Nova under test, filter by filter and as a whole."""
