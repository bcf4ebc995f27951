"""Nothing is collected here unless CLUSTER is set: `make test-cluster` does it, and installs the engines."""

import os

collect_ignore_glob = [] if os.environ.get("CLUSTER") else ["test_*.py"]
