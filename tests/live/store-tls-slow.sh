#!/usr/bin/env bash
# A store whose TLS handshakes take five times as long as a request may: agents meet all the same, as a handshake has a
# deadline of its own, and their connections are kept.
# deadline: 120 s
set -u
. tests/live/certificates.bash
here=$PWD
BIN=$(realpath "$BIN")
[ -e "$BIN/rankrun_tls.so" ] || { echo 'there is no rankrun_tls.so: it was built without libssl-dev'; exit 77; }
command -v python3 >/dev/null || { echo 'no python3 on this host: apt install python3'; exit 77; }
cd "$TMPDIR" || exit 1
make_authority ca
make_certificate server 127.0.0.1
exec 3< <(exec "$BIN/rankrun" store --host 127.0.0.1 --port 0 --cert server.pem --key server.key 2>said.store)
read -r -t 180 -u 3 line || fail 'the store did not start'
exec 4< <(exec python3 "$here/tests/live/slow_tls.py" "${line##*:}" 1000 2>said.front)
read -r -t 180 -u 4 port || fail 'nothing stands before the store'
cat <&4 >connections &
agent() {
    timeout 300 "$BIN/rankrun" --nnodes 2 --rdzv-backend embedded --rdzv-endpoint "127.0.0.1:$port" --rdzv-id slow \
        --rdzv-conf "protocol=https,cacert=ca.pem,join_timeout=40,hb=200ms,fence=6s,hard=6100ms,suspect=6500ms,last_call_timeout=2s,admit=50ms" \
        --no-python true >"said.$1" 2>&1
}
SECONDS=0
agent 1 &
first=$!
agent 2 || fail 'the second agent did not end well'
wait $first || fail 'the first agent did not end well'
n=$(grep -c connection connections)
# A request that a late machine gives up takes its connection with it: so many more as it took long.
[ "$n" -le $((40 + 2 * SECONDS)) ] || fail "$n connections were begun: they are not kept"
