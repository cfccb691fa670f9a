#!/usr/bin/env bash
# Make docs/images/report.png, the picture of the README: the report of a real run, in Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/equipoise simulate drs-table1 --out "$folder/run" >/dev/null
chromium --headless --no-sandbox --hide-scrollbars --window-size=1000,760 \
  --screenshot="$PWD/docs/images/report.png" "file://$folder/run/report.html" >/dev/null 2>&1
echo "docs/images/report.png"
