#!/usr/bin/env bash
# A store that nobody gave a token has one where its agents can be told it: with -H by standard input, in the
# harness's clusters by the environment, under Slurm by MUNGE. Nobody else is answered, and no process of the job shows
# it: not in its environment, not on its command line.
# deadline: 300 s
set -u
. tests/live/patience.bash
BIN=$(realpath "$BIN")
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
command -v curl >/dev/null || {
    echo 'no curl here (package curl)'
    exit 77
}

# A worker as a stranger: asks the store at the first argument, then looks for a token in all that it may read.
cat >stranger <<'E2'
#!/usr/bin/env bash
# What stands in the command line of an agent above it, where no address is given.
agent() { tr '\0' '\n' </proc/"$1"/cmdline | sed -n 's/^--rdzv-endpoint=//p; /^--rdzv_endpoint$/{n;p}'; }
at=${2-} above=$PPID
while [ -z "$at" ] && [ "$above" -gt 1 ]; do
    at=$(agent "$above")
    above=$(sed -n 's/^PPid:\t//p' "/proc/$above/status")
done
{
    echo "at $at"
    curl -s -m 20 -o /dev/null -w 'range %{http_code}\n' -d '{"key":"AA==","range_end":"AA=="}' "http://$at/v3/kv/range"
    curl -s -m 20 -o /dev/null -w 'metrics %{http_code}\n' "http://$at/metrics"
    cd /proc
    # Tests beside this one have tokens too: only who has its folder in the environment is of it.
    ours=$(grep -alzF 'HERE' [0-9]*/environ | cut -d / -f 1)
    for pid in $ours; do
        grep -qazE '^RANKRUN_STORE_TOKEN=.' "$pid/environ" && echo "shown by $pid"
        grep -qazE '^[0-9a-f]{32}$' "$pid/cmdline" && echo "on the command line: $pid"
    done
} >>"$1" 2>/dev/null
exit 0
E2
sed -i "s|HERE|$PWD|" stranger && chmod +x stranger
expect_shut() { # expect_shut FILE WHAT
    [ "$(grep -c '^range 401$' "$1")" -gt 0 ] && [ "$(grep -c '^metrics 401$' "$1")" -gt 0 ] ||
        fail "$2: the store answers strangers: $(cat "$1")"
    grep -vE '^(at .*|(range|metrics) 401)$' "$1" && fail "$2: the token is shown"
}

# ---- one command for many hosts ----
timeout 300 "$BIN/rankrun" -H localhost,127.0.0.1 --rdzv-conf $patient --no-python ./stranger "$PWD/hosts" >said 2>&1 ||
    fail "-H: $(cat said)"
expect_shut hosts -H
timeout 300 "$BIN/rankrun" -H localhost,127.0.0.1 --rdzv-backend static --master-port $((20000 + $$ % 10000)) \
    --rdzv-conf $patient --no-python ./stranger "$PWD/static" "127.0.0.1:$((20001 + $$ % 10000))" >said 2>&1 ||
    fail "-H, static: $(cat said)"
expect_shut static '-H, static'
# Who says one is taken at his word.
RANKRUN_STORE_TOKEN=said timeout 300 "$BIN/rankrun" -H localhost,127.0.0.1 --rdzv-conf $patient --no-python true >said 2>&1 ||
    fail "-H with a token: $(cat said)"

# ---- the harness's clusters ----
for isolation in namespaces processes; do
    cat >own.yaml <<Y
scenario: own
job: {nnodes: "2:2", workers_per_node: 1, rdzv_conf: $patient_map, run: [$PWD/stranger, "{out}/seen"]}
probe: {status: {cmd: [$BIN/rankrun, status, --rdzv-endpoint, "store:29400", --rdzv-id, own], on: n0, every: 100ms}}
timeline: []
Y
    # Where nodes are processes of this host they have no names.
    [ $isolation = processes ] && sed -i '/^probe:/d' own.yaml
    "$BIN/rankquake" run own.yaml --isolation $isolation --out "$isolation" >said 2>&1
    rc=$?
    [ $rc = 4 ] && echo "without $isolation: $(tail -n 1 said)" && continue
    [ $rc = 0 ] || fail "$isolation: exit $rc: $(cat said)"
    expect_shut "$isolation"/own-*/seen $isolation
done

# ---- Slurm: by MUNGE, whose daemon has a socket at one place in a file system ----
if ! command -v munged >/dev/null || ! unshare -m true 2>/dev/null; then
    echo 'no munged here (package munge), or no right to a mount namespace: MUNGE was not tried'
    exit $bad
fi
if grep -q 'built without munge.h' "$BIN/rankrun"; then
    echo 'rankrun was built without munge.h (package libmunge-dev): MUNGE was not tried'
    exit $bad
fi
cat >slurm <<'E2'
#!/usr/bin/env bash
# In a mount namespace of its own: a daemon, two agents as of a Slurm job, and a stranger of another user.
set -u
run=$1 patient=$2 port=$3
mount -t tmpfs none /run && mkdir -m 755 /run/munge && head -c 64 /dev/urandom >/run/munge/key && chmod 600 /run/munge/key || exit 1
munge() { munged --socket /run/munge/munge.socket.2 --key-file /run/munge/key --pid-file /run/munge/pid \
    --log-file /run/munge/log --seed-file /run/munge/seed --force "$@" 2>/dev/null; }
munge || exit 1 # it answers when this returns
trap 'munge --stop' EXIT
agent() { # agent N COMMAND...
    SLURM_JOB_ID=7 timeout 300 "$run" --nnodes 2 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id slurm --local-addr "127.0.0.$1" \
        --rdzv-conf "$patient,join_timeout=30" --no-python "${@:2}" >"slurm.$1" 2>&1
}
agent 1 ./stranger "$PWD/slurm.seen" "127.0.0.1:$port" &
first=$!
agent 2 ./stranger "$PWD/slurm.seen" "127.0.0.1:$port"
second=$?
wait $first && [ $second = 0 ] || exit 1
# Another user is told the same credential, and cannot open it.
exec 3< <(SLURM_JOB_ID=7 exec timeout 300 "$run" store --host 127.0.0.1 --port 0 2>slurm.store)
store=$!
read -r -t 180 -u 3 line || exit 1
port=${line##*:}
SLURM_JOB_ID=7 timeout 300 "$run" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id slurm >slurm.ours 2>&1
SLURM_JOB_ID=7 timeout 300 setpriv --reuid=65534 --regid=65534 --clear-groups "$run" status \
    --rdzv-endpoint "127.0.0.1:$port" --rdzv-id slurm >slurm.theirs 2>&1
kill $store
cat <&3 >/dev/null # until it is gone
E2
chmod +x slurm
unshare -m ./slurm "$BIN/rankrun" $patient $((22000 + $$ % 8000)) >said 2>&1 || fail "Slurm: $(cat said slurm.1 slurm.2)"
expect_shut slurm.seen Slurm
grep -q 'has no run slurm' slurm.ours || fail "the store's own user: $(cat slurm.ours)"
grep -q 'tells its token by munge, which cannot be opened here' slurm.theirs || fail "another user: $(cat slurm.theirs)"
exit $bad
