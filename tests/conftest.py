"""Settings of the test run."""

import os

from hypothesis import settings

# A shared machine makes every deadline a coin toss; CI repeats one sequence, so that it fails only
# for what changed.
settings.register_profile("outrider", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("outrider")
