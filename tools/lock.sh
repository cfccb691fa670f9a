#!/usr/bin/env bash
# Choose the newest allowed versions and write them, with hashes, for every Python we promise.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-emit-index-url --upgrade --no-emit-package equipoise "$@"
}
command -v uv >/dev/null || { echo "locking needs uv: pip install uv" >&2; exit 2; }
compile pyproject.toml --group build -o requirements/run.lock
compile pyproject.toml --all-extras --group build --group test -c requirements/run.lock \
  -o requirements/test.lock
