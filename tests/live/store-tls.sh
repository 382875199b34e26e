#!/usr/bin/env bash
# Stores that speak TLS by themselves: one that an agent serves carries a job over a killed worker, between two networks
# where there can be some; one of its own that
# wants certificates of clients tells status and metrics to who has one. Who trusts another authority, shows no
# certificate or speaks plain HTTP is told so, and so is who gives a store files that are wrong.
# deadline: 120 s
set -u
. tests/live/patience.bash
. tests/live/certificates.bash
BIN=$(realpath "$BIN")
[ -e "$BIN/rankrun_tls.so" ] || { echo 'there is no rankrun_tls.so: it was built without libssl-dev'; exit 77; }
cd "$TMPDIR" || exit 1
make_authority ca
make_authority other
make_certificate server 127.0.0.1 10.83.0.1

# Two nodes with a network of their own each, and a cable between them. They end with us.
node() { # node VARIABLE COMMAND...: starts what holds one
    exec 3< <(exec "${@:2}" sh -c 'echo up; exec sleep 100')
    read -r -t 180 -u 3 _ || return 1
    eval "$1=$!"
}
in_node() { nsenter --target "$1" --user --net --preserve-credentials "${@:2}"; }
make_nodes() {
    command -v ip >/dev/null && unshare --map-root-user --net true 2>/dev/null || return 1
    node n0 unshare --map-root-user --net && node n1 nsenter --target "$n0" --user --net --preserve-credentials unshare --net &&
        in_node "$n0" ip link add cable type veth peer name cable netns "$n1" || return 1
    for n in 0 1; do
        at=n$n
        in_node "${!at}" ip address add "10.83.0.$((n + 1))/24" dev cable && in_node "${!at}" ip link set cable up || return 1
    done
}

conf=join_timeout=30
agent() { # agent N CONF PROGRAM...
    timeout 300 "${on[@]}" "$BIN/rankrun" --nnodes 2 --max-restarts 1 --rdzv-endpoint "$host:$port" --rdzv-id tls \
        --local-addr "${host%.*}.$1" --rdzv-conf "$patient,$conf,$2" --no-python "${@:3}" >"said.$1" 2>&1
}
refused() { # refused RC N SENTENCE
    local rc=$?
    [ $rc = "$1" ] || fail "exit code $rc of $2, not $1"
    grep -qF -e "$3" "said.$2" || fail "'$3' is not told"
}

# Of one that an agent serves all agents have the same command line, and only its host needs the key.
port=$((20000 + $$ % 10000))
# shellcheck disable=SC2016 # the worker's; of rankrun's arguments $$ is one $
worker=(bash -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || kill -KILL $$$$')
host=127.0.0.1 on=(env) there=(env)
if make_nodes 2>said; then
    host=10.83.0.1 on=(nsenter --target "$n0" --user --net --preserve-credentials)
    there=(nsenter --target "$n1" --user --net --preserve-credentials)
fi
agent 1 cacert=ca.pem,store_cert=server.pem,store_key=server.key "${worker[@]}" &
first=$!
on=("${there[@]}")
agent 2 protocol=https,cacert=ca.pem "${worker[@]}" || fail 'a job whose agent serves its store over TLS'
wait "$first" || fail 'the agent that serves it'
host=127.0.0.1 on=(env)
grep -q 'local rank 0.*SIGKILL' said.1 said.2 || fail 'no worker was killed'
grep -q 'round 2 (failure): world 2' said.1 || fail 'a killed worker leads to no new round'

serve() { # serve OPTION...: sets store and port
    exec 3< <(exec "$BIN/rankrun" store --port 0 "$@" 2>said.store)
    store=$!
    read -r -t 180 -u 3 line || fail 'the store did not start'
    port=${line##*:}
}
serve --host 0.0.0.0 --cert server.pem --key server.key --client-ca ca.pem
mine=cacert=ca.pem,cert=server.pem,key=server.key
agent 3 "protocol=https,$mine" "${worker[@]}" &
first=$!
agent 4 "protocol=https,$mine" "${worker[@]}" || fail 'a job with a store that wants certificates'
wait "$first" || fail 'its other agent'
status() { timeout 300 "$BIN/rankrun" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id tls "$@" >said.status 2>&1; }
status --rdzv-conf "protocol=https,$mine" || fail 'status by https'
grep -q '^phase *closed: succeeded, round 2' said.status || fail 'status by https tells something else'
printf 'GET /metrics HTTP/1.0\r\n\r\n' | timeout 300 openssl s_client -quiet -connect "127.0.0.1:$port" -CAfile ca.pem \
    -verify_return_error -cert server.pem -key server.key >said.metrics 2>&1
grep -q '^rankrun_job_round.* 2$' said.metrics || fail 'metrics by https'
conf=join_timeout=500ms
agent 5 "protocol=https,${mine/ca.pem/other.pem}" true
refused 69 5 'cacert= names the file of who signs'
status --rdzv-conf protocol=https,cacert=ca.pem
refused 69 status 'it may want a certificate'
status --rdzv-conf protocol=https,cacert=ca.pem,cert=other.pem,key=other.key
refused 69 status 'does the store accept the certificate'
status
refused 69 status 'this store speaks TLS: https, --rdzv-conf protocol=https,cacert=FILE'
"$BIN/rankquake" ask "https://127.0.0.1:$port/metrics" '' >said.ask && fail 'a page of whom nobody trusts was taken'
grep -q '^no answer: .*certificate' said.ask || fail 'a page by https does not say that the certificate is the trouble'
grep -q 'is not let in.* http request' said.store || fail 'the store does not say who was not let in'
grep -q 'without a token' said.store && fail 'a store that knows its clients says that everybody is answered'

# Without a certificate a store says what it was taken for.
serve --host 127.0.0.1
agent 6 protocol=https,cacert=ca.pem true
refused 69 6 'or it has no TLS'
grep -q 'a client that speaks TLS knocked at port' said.store || fail 'a plain store does not say that TLS was asked for'

wrong() { # wrong SENTENCE OPTION...
    timeout 300 "$BIN/rankrun" store --host 127.0.0.1 --port 0 "${@:2}" >said.wrong 2>&1
    refused 64 wrong "TLS of the store: $1"
}
wrong 'none.pem: No such file' --cert none.pem --key server.key
wrong 'other.key: must be the private key of server.pem' --cert server.pem --key other.key
RANKRUN_TLS=/none wrong 'RANKRUN_TLS=/none: there is no such file' --cert server.pem --key server.key
agent 7 store_cert=server.pem,store_key=other.key touch started
refused 64 7 'TLS of the store: other.key: must be the private key of server.pem'
agent 8 store_cert=server.pem,protocol=http touch started
refused 64 8 'and protocol=http was given'
[ -e started ] && fail 'a worker was started before the files were looked at'
exit 0
