#!/bin/sh
# Install what `make test-cluster` needs, where this is root on a Debian. Starts no service of Debian's.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
missing=""
for engine in haproxy pgbouncer redis-server redis-sentinel; do
    command -v "$engine" >/dev/null || missing="$missing $engine"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Not installed:$missing. On Debian, as root: apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "Installing$missing"
policy=/usr/sbin/policy-rc.d  # whatever it forbids is not started
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
