"""What every test shares: how Hypothesis searches."""

import os

from hypothesis import settings

# No deadline: a slow machine is not a failing test. The blob reproduces a failure elsewhere.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), max_examples=200)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")
