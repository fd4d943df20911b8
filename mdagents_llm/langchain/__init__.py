"""The parts of `mdagents_llm.langchain_model`: messages, reply forms, streams, an event loop."""
