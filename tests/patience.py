"""Times that tests wait for what ought to come at once."""
# A test says that it hangs when something takes longer. Nothing here needs nearly as long, even on a machine with four times
# as much to do as it has processors and with a cold disk. So no test says by a time-out that something is too slow.
PATIENCE = 150.0  # seconds
