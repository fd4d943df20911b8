"""Companion systems: infra and EXAID at work outside the benchmark, each complete by itself."""

import infra  # noqa: F401 - says so if this Python is too old
