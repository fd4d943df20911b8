"""The child process of `server.py`: loads one GGUF file, serves it, and ends with its parent.

The module runs as a script and is never imported. It reads one JSON line of settings from stdin and
writes one JSON line `{"url": "http://127.0.0.1:PORT"}` to stdout once the server listens. It stops
at the end of stdin: the kernel closes the pipe however the parent dies, even by SIGKILL. An error
while loading the model goes to stderr, which the parent reads.
"""

import json
import os
import signal
import sys


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    settings = json.loads(sys.stdin.buffer.readline())

    # Only our one line may reach the parent on stdout, whatever native code prints.
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    # OpenMP threads spin 300,000 rounds at each barrier before they sleep. With one other busy
    # process on 2 cores this made two concurrent replies 30 times slower; 100 rounds cost nothing.
    os.environ.setdefault("GOMP_SPINCOUNT", "100")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["gguf"]
    params.model_alias = {settings["model_name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["api_key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.cpuparams.n_threads = settings["generation_threads"]
    params.cpuparams_batch.n_threads = settings["batch_threads"]
    params.cache_ram_mib = 0  # the default keeps up to 8 GiB of old prompts
    params.fit_params = False  # sizes are given; fitting them takes a third of the startup time
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 1  # errors only: they name the cause when loading fails
    server = xllamacpp.Server(params)

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        with reply:  # fails if the parent has died in the meantime
            json.dump({"url": server.listening_address}, reply)
            reply.write("\n")
        sys.stdin.buffer.read()
    finally:
        # Exit at once: an orderly shutdown would wait for replies that nobody reads, or forever.
        os._exit(0)


if __name__ == "__main__":
    main()
