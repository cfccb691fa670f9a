#!/usr/bin/env bash
# Install the system parts that some tests and the build of BtrPlace use, where that is possible: as root on Debian.
# Where it is not, those tests skip and say what was missing.
set -uo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ||
  missing+=(postgresql)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
  command -v google-chrome >/dev/null || missing+=(chromium)
[ -x /usr/sbin/sshd ] || command -v sshd >/dev/null || missing+=(openssh-server)
command -v ssh >/dev/null || missing+=(openssh-client)
command -v java >/dev/null || missing+=(default-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
command -v kubectl >/dev/null || missing+=(kubernetes-client)
/usr/bin/python3 -c 'import simgrid' >/dev/null 2>&1 || missing+=(python3-simgrid)

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "not here: ${missing[*]} (tests that need it will skip; root on Debian would install it)"
  exit 0
fi
echo "installing ${missing[*]} for the tests ..."
export DEBIAN_FRONTEND=noninteractive
# The tests start their own servers: no package is to start one, least of all an SSH daemon.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
{ apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } \
  >/tmp/equipoise-system-parts.log 2>&1 ||
  echo "could not install ${missing[*]}: see /tmp/equipoise-system-parts.log (those tests will skip)"
exit 0
