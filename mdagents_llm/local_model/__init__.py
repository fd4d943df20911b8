"""A GGUF model served by llama.cpp in a child process, and the weights of the embedded model."""
