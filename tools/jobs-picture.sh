#!/usr/bin/env bash
# Make docs/images/jobs.png, the picture of docs/jobs.md: the report of a real run, in Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
${EQUIPOISE:-.venv/bin/equipoise} jobs -p examples/jobs/platform.xml \
  -w examples/jobs/workload.json --policy easy --out "$folder/run" >/dev/null
chromium --headless --no-sandbox --hide-scrollbars --window-size=1000,760 \
  --screenshot="$PWD/docs/images/jobs.png" "file://$folder/run/report.html" >/dev/null 2>&1
echo "docs/images/jobs.png"
