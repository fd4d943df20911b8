"""Spans of runs for OpenTelemetry, by the semantic conventions for generative AI (`--otel`)."""
