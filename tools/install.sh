#!/usr/bin/env bash
# Make .venv and install what a lock file names, and the product itself, editable.
# Works without Debian's python3-venv package: the pip outside installs into the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
lock=$1
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Equipoise needs Python 3.11 or newer, and $python is $("$python" --version 2>&1)." >&2
  echo "Name another one: make PYTHON=/path/to/python3.11 ..." >&2
  exit 2
}
"$python" -m pip --version >/dev/null 2>&1 || {
  echo "$python has no pip. On Debian: apt-get install python3-pip" >&2
  exit 2
}
[ -x .venv/bin/python ] || "$python" -m venv --without-pip .venv

install() {
  "$python" -m pip --python .venv/bin/python --disable-pip-version-check install \
    --quiet --no-input --root-user-action ignore "$@"
}
echo "installing what $lock names ..."
install --require-hashes -r "$lock"
install --no-deps --no-build-isolation --editable .
echo "compiling for this machine ..."
# Python does it on its own, unless the environment forbids it to write bytecode.
.venv/bin/python -m compileall -q src/equipoise
.venv/bin/python -m equipoise.sim
