#!/usr/bin/env bash
# Run a command while the schedulers under test (Nova, Watcher, ProxLB, BtrPlace, kube-scheduler) are made beside it.
# Their environments are cached by lock file, so that this takes minutes only the first time. The
# tests that need them wait for the process that EQUIPOISE_TARGETS_PID names.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
# A session of its own, so that pip and Maven end with it.
setsid nice .venv/bin/python -m equipoise.adapters.targets >"$log" 2>&1 &
export EQUIPOISE_TARGETS_PID=$!
trap 'kill -- "-$EQUIPOISE_TARGETS_PID" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
"$@"
status=$?
if kill -0 "$EQUIPOISE_TARGETS_PID" 2>/dev/null; then
  echo "the schedulers under test are still being made; the command did not wait for them"
elif ! wait "$EQUIPOISE_TARGETS_PID"; then
  echo "some schedulers under test could not be made, and their tests were skipped:"
  grep -v '^making the environment of' "$log" | grep -v '^/'
fi
exit "$status"
