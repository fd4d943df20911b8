"""What `infra.langchain_model` is made of: messages, forms of replies, streams, a loop."""
