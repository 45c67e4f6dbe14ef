# The Windlass agent in a container. The coordinator serves this file and the agent itself; nothing else is fetched but the
# packages of Debian:
#   curl -fsSL https://windlass.example.com/downloads/agent.Dockerfile |
#     docker build --build-arg WINDLASS_URL=https://windlass.example.com -t windlass-agent -
#   docker run -d --stop-timeout 960 -v windlass-agent:/var/lib/windlass-agent -e WINDLASS_AGENT_TOKEN=wlr_… \
#     --cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add SETPCAP --cap-add CHOWN --cap-add FOWNER \
#     --cap-add DAC_OVERRIDE --cap-add KILL --security-opt no-new-privileges windlass-agent
# The volume is the agent's identity and its spool: without it each start is another agent. The token serves the first start only.
# What programs of runs need besides (git, Python, browsers) belongs into an image made FROM this one.

FROM debian:bookworm-slim AS fetched
ARG WINDLASS_URL
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /fetched
# What was changed on the way, or cut, ends the build.
RUN set -eu; \
    : "${WINDLASS_URL:?give it by --build-arg: the address of the coordinator}"; \
    case "$(uname -m)" in x86_64) platform=linux-x64 ;; aarch64) platform=linux-arm64 ;; *) platform="linux-$(uname -m)" ;; esac; \
    curl -fsSLO --retry 3 "$WINDLASS_URL/downloads/SHA256SUMS"; \
    archive=$(awk -v end="-$platform.tar.gz" 'substr($2, length($2) - length(end) + 1) == end { print $2 }' SHA256SUMS); \
    : "${archive:?the coordinator has no agent for this platform; see WINDLASS_DOWNLOADS}"; \
    curl -fsSLO --retry 3 "$WINDLASS_URL/downloads/$archive"; \
    sha256sum --check --ignore-missing SHA256SUMS; \
    mkdir /agent; \
    tar -xzf "$archive" -C /agent --strip-components 1 --no-same-owner

FROM debian:bookworm-slim
ARG WINDLASS_URL
# tini: the first process of a container takes in every orphan that a program leaves behind, and has to let it go when it ends.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates procps tini util-linux \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o 10001 -g 10001 -m 0711 /var/lib/windlass-agent
COPY --from=fetched /agent /opt/windlass-agent
RUN ln -s /opt/windlass-agent/bin/windlass /usr/local/bin/windlass

ENV WINDLASS_URL=$WINDLASS_URL \
    WINDLASS_AGENT_HOME=/var/lib/windlass-agent \
    WINDLASS_AGENT_HEALTH=127.0.0.1:9464
VOLUME /var/lib/windlass-agent
WORKDIR /var/lib/windlass-agent
# As root the agent gives each process of a run a user of its own, who cannot read the agent's key; the powers above are
# all that it needs, and by them it can use its folder as well. With `--user 10001`, who owns that folder, runs can take
# its identity: then set WINDLASS_AGENT_ISOLATION=bubblewrap, where the container may make user namespaces.

# Ready: connected, has polled within a minute, has room on its disk. The image has no curl; the agent brings a Node.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/opt/windlass-agent/bin/node", "-e", "fetch('http://127.0.0.1:9464/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

# SIGTERM drains: docker's ten seconds are too short for that, hence --stop-timeout above.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/windlass-agent/bin/windlass"]
CMD ["agent", "start"]
