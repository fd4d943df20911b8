"""What `mdagents_llm.langchain_model` is made of: messages, forms of replies, streams, a loop."""
