"""What of LangChain's standard suite for chat models does not run here, and why."""

from __future__ import annotations

NOT_RUN = {
    "test_init_from_env": "the adapter reads no environment; the model that it wraps has its key",
    "test_serdes": "a model with connections cannot be written down and read again",
    "test_invoke_with_model_override": "an adapter has one model, chosen where it was made",
    "test_ainvoke_with_model_override": "same reason",
    "test_stream_with_model_override": "same reason",
    "test_astream_with_model_override": "same reason",
    "test_image_inputs": "it fetches a picture from the internet",
    "test_image_tool_message": "a picture of a tool is a `ConfigError`",
    "test_pdf_inputs": "prompts hold text and pictures; others are a `ConfigError`",
    "test_pdf_tool_message": "same reason",
    "test_audio_inputs": "same reason",
    "test_stream_time": "it measures time on recorded HTTP of a vendor",
}
"""Name of a test that the suite skips -> the reason. Every other one passes."""
