"""How long tests wait for what ought to come at once."""
# Whatever takes longer is said to hang. It is far more than anything here needs on a machine with four times as much to do
# as it has processors and a disk that is read for the first time: no test says by a time-out that something is too slow.
PATIENCE = 150.0  # seconds
