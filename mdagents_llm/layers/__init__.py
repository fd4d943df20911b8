"""The layers between a caller and a provider: each is a `ChatModel` around another one."""
