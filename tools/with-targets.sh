#!/usr/bin/env bash
# Run a command while the schedulers under test (Nova, Watcher, ProxLB, BtrPlace) are made beside it.
# Their environments are cached by lock file, so that this takes minutes only the first time. The
# tests that need them wait for the process that EQUIPOISE_TARGETS_PID names.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
nice .venv/bin/python -m equipoise.adapters.targets >"$log" 2>&1 &
export EQUIPOISE_TARGETS_PID=$!
"$@"
status=$?
if kill "$EQUIPOISE_TARGETS_PID" 2>/dev/null; then
  echo "the schedulers under test were still being made; their tests did not wait for them"
elif ! wait "$EQUIPOISE_TARGETS_PID"; then
  echo "some schedulers under test could not be made, and their tests were skipped:"
  tail -n 5 "$log"
fi
rm -f "$log"
exit "$status"
