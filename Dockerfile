# The server: gateway, dashboard and MCP. `scripts/images server` builds and tags it; by hand:
#   pip wheel --no-deps --wheel-dir dist . && docker build .
# It brings no engineering program: adapters run in containers of their own (compose.yaml).
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS packages
ENV PIP_CACHE_DIR=/var/cache/pip
RUN python3 -m venv /opt/metaforge
COPY dist/*.whl /build/
# An index of your own, and its certificate, come as secrets: neither stays in the image.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/build/certificates.pem \
    --mount=type=cache,target=/var/cache/pip \
    for wheel in /build/*.whl; do \
      /opt/metaforge/bin/pip install "$wheel[postgres,graph,objects,telemetry]" || exit 1; \
    done

FROM ${BASE}
RUN mkdir -p /workspace /data /shared && chown 65534:65534 /workspace /data /shared
COPY --from=packages /opt/metaforge /opt/metaforge
LABEL org.opencontainers.image.title="MetaForge: the server" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV HOME=/tmp PATH=/opt/metaforge/bin:$PATH PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 METAFORGE_HOME=/data METAFORGE_WORKSPACE=/workspace
EXPOSE 8000 8765
USER 65534:65534
WORKDIR /workspace
ENTRYPOINT ["metaforge"]
CMD ["serve", "--host", "0.0.0.0"]
