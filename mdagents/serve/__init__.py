"""A team as a model: a server with the API of OpenAI for chat completions and Responses."""
