# The programs of the benchmark in a container; docs/how-to/container.md says how to build and use it.
ARG PYTHON=3.11-slim-bookworm
# with-model has the embedded model inside (98 MB); without-model is for endpoints alone.
ARG MODEL=with-model

FROM python:${PYTHON} AS packages
WORKDIR /build
COPY requirements.txt ./
RUN python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir --requirement requirements.txt
COPY . ./
RUN /opt/venv/bin/python -m pip install --no-cache-dir --no-deps .

FROM packages AS weights
RUN /opt/venv/bin/python -m mdagents_llm.local_model.weights --cache-dir /opt/cache

FROM python:${PYTHON} AS without-model
# libgomp1 is what a model needs that runs here. Debian keeps its newest version alone: one that is
# named here would not be found some day.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --home-dir /work --create-home researcher
COPY --from=packages /opt/venv /opt/venv
# Any user of the host may run it (--user): what is not for /work is written to /tmp.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib
LABEL org.opencontainers.image.title="mdagents" \
      org.opencontainers.image.description="Benchmark of multi-agent medical question answering" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /work
USER 10001
# No shell before it, so that Ctrl-C and docker stop reach the program.
ENTRYPOINT ["mdagents"]
CMD ["--help"]

FROM without-model AS with-model
COPY --from=weights /opt/cache /opt/cache
ENV MDAGENTS_CACHE_DIR=/opt/cache

# hadolint ignore=DL3006
FROM ${MODEL}
