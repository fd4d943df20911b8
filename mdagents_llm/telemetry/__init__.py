"""OpenTelemetry: spans of model calls, their parents, and how they are sent (`--otel`)."""
