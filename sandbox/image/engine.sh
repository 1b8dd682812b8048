#!/usr/bin/env bash
# Makes sure that a Docker engine answers: uses the one that is there, else, as root on Debian (or
# Ubuntu), installs docker.io and starts a dockerd of its own, without network for containers.
# Prints the line to `export` where the engine is not at the default socket. Safe to run again.
set -euo pipefail

readonly RUN=/run/mars-envs-docker          # the Python side looks here too: sandbox/engine.py
readonly DATA=/var/lib/mars-envs-docker
readonly OURS=unix://$RUN/docker.sock

say() { printf '%s\n' "$*" >&2; }
# `timeout` without -s KILL does not end a client that hangs.
version() { timeout -s KILL 5 docker ${1:+-H "$1"} version -f '{{.Server.Version}}' 2>/dev/null; }

found() { # version, URL or nothing for the default socket
  say "Docker engine $1 answers${2:+ at $2}."
  if [ -n "${2:-}" ] && [ "${2:-}" != "${DOCKER_HOST:-}" ]; then echo "export DOCKER_HOST=$2"; fi
  exit 0
}

if command -v docker >/dev/null; then
  if answer=$(version); then found "$answer" "${DOCKER_HOST:-}"; fi
  if answer=$(version "$OURS"); then found "$answer" "$OURS"; fi
fi
if [ -n "${DOCKER_HOST:-}" ]; then
  say "DOCKER_HOST is $DOCKER_HOST and no engine answers there; unset it to have one started."
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  say "No Docker engine answers. Starting one needs root: run this as root, or ask for an engine and"
  say "set DOCKER_HOST. Without one the sandbox uses bubblewrap (mars-envs sandbox doctor)."
  exit 1
fi
if ! command -v dockerd >/dev/null; then
  if [ ! -e /etc/debian_version ] || ! command -v apt-get >/dev/null; then
    say "No dockerd here, and this is not Debian: install Docker (https://docs.docker.com/engine/install/)."
    exit 1
  fi
  say "Installing docker.io and iptables ..."
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables >&2
  # The package may have started an engine of its own.
  if answer=$(version); then found "$answer" ""; fi
fi

mkdir -p "$RUN" "$DATA"
exec 9>"$RUN/start.lock"
flock 9                                     # of two that start at once, the second finds the first's
if answer=$(version "$OURS"); then found "$answer" "$OURS"; fi
# Left by an engine that was killed, pid files block the next one; its process may still be a zombie.
for file in "$RUN/docker.pid:dockerd" "$RUN/exec/containerd/containerd.pid:containerd"; do
  pid=$(cat "${file%:*}" 2>/dev/null || true)
  if [ -n "$pid" ] && [[ "$(readlink "/proc/$pid/exe" || true)" != */"${file##*:}" ]]; then
    rm -f "${file%:*}"
  fi
done
say "Starting dockerd ..."
setsid nohup dockerd --data-root "$DATA" --exec-root "$RUN/exec" --host "$OURS" \
  --pidfile "$RUN/docker.pid" --bridge=none --iptables=false --ip6tables=false --log-driver=none \
  >"$RUN/dockerd.log" 2>&1 </dev/null 9>&- &
started=$!
for _ in $(seq 150); do
  if answer=$(version "$OURS"); then found "$answer" "$OURS"; fi
  if ! kill -0 "$started" 2>/dev/null; then break; fi
  sleep 0.2
done
say "dockerd did not come up; the end of $RUN/dockerd.log:"
tail -n 15 "$RUN/dockerd.log" >&2
exit 1
