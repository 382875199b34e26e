#!/usr/bin/env bash
# --standalone with an etcd as the backend: one is started beside the job, is used, and is gone with it, also when
# the agent is killed, with its folder. What cannot be started is told; one that ends takes the job with it.
# deadline: 180 s
set -u
. tests/live/patience.bash
BIN=$(realpath "$BIN")
mkdir "$TMPDIR/tmp" && cd "$TMPDIR" || exit 1
export TMPDIR=$TMPDIR/tmp
agent=''
fail() {
    echo "FAILED: $*"
    cat said 2>/dev/null
    exit 1
}
finish() {
    kill -KILL ${agent:+"$agent"} 2>/dev/null
    wait
}
trap finish EXIT
run() { timeout 300 "$BIN/rankrun" --standalone --rdzv-backend "$@" >said 2>&1; }
refused() { # refused CODE SENTENCE
    local rc=$?
    [ $rc = "$1" ] || fail "exit code $rc, not $1"
    grep -qF -e "$2" said || fail "'$2' is not told"
}

# ---- what cannot be started ----

export TORCHELASTIC_ETCD_BINARY_PATH=/nowhere/etcd
run etcd-v3 --no-python true
refused 64 'TORCHELASTIC_ETCD_BINARY_PATH=/nowhere/etcd in the environment: No such file'
export TORCHELASTIC_ETCD_BINARY_PATH=./etcd
mkdir etcd
run etcd-v3 --no-python true
refused 69 'the etcd of this job (./etcd) did not start: execute ./etcd: Permission denied'
rmdir etcd
# What etcd 3.6 says of the v2 API.
cat >etcd <<'SH'
#!/bin/sh
for option; do [ "$option" != --enable-v2 ] || echo "flag provided but not defined: -enable-v2" >&2; done
echo usage: >&2
exit 2
SH
chmod +x etcd
run etcd --no-python true
refused 69 'an etcd from 3.6 on has no v2 API'
unset TORCHELASTIC_ETCD_BINARY_PATH
mkdir no-etcd && ln -s "$(command -v timeout)" no-etcd/
PATH=$PWD/no-etcd run etcd --no-python true
refused 69 'apt install etcd-server'
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

if ! command -v etcd >/dev/null; then
    echo 'no etcd on this host: apt install etcd-server'
    exit 77
fi

# ---- it is used ----

for backend in etcd-v3 etcd; do
    # Variables of an etcd on this host are not for this one; a worker that fails is started again.
    # shellcheck disable=SC2016 # the worker's
    ETCD_LISTEN_CLIENT_URLS=http://192.0.2.1:1 ETCD_CERT_FILE=none run $backend --max-restarts 1 --nproc-per-node 2 \
        --no-python bash -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]' || fail "a job over its own $backend"
    grep -q 'started an etcd at 127.0.0.1:' said || fail 'it is not told where its etcd is'
    [ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"
done

# ---- it goes ----

mkfifo events
exec 3<>events
child_of() { # child_of PID NAME: sets found
    local list
    read -r -a list <"/proc/$1/task/$1/children"
    for found in "${list[@]}"; do
        [ "$(cat "/proc/$found/comm")" = "$2" ] && return
    done
    fail "process $1 has no child $2"
}
begin() { # begin BACKEND: sets agent, keeper, etcd, worker
    # shellcheck disable=SC2016 # the worker's
    "$BIN/rankrun" --standalone --rdzv-backend "$1" --rdzv-conf $patient --max-restarts 1 --no-python \
        bash -c 'echo "$BASHPID" >events && read -r _ <events.never' 2>said &
    agent=$!
    read -r -t 180 -u 3 worker || fail 'no worker was started'
    child_of $agent rankrun-etcd && keeper=$found
    child_of "$keeper" etcd && etcd=$found
}
gone() { # gone WHAT: all of them, and the folder
    for pid in $worker $etcd $keeper; do timeout 300 tail -s 0.02 --pid="$pid" -f /dev/null || fail "$1: $pid lives on"; done
    [ -z "$(ls tmp)" ] || fail "$1: left behind: $(ls tmp)"
}
ends() { # ends CODE WHAT
    wait $agent
    local rc=$?
    agent=''
    [ $rc = "$1" ] || fail "$2: exit code $rc, not $1"
}
mkfifo events.never

begin etcd-v3
kill -KILL $agent
gone 'the agent was killed'

# Who left is told by the signal, whatever else was told to end.
begin etcd-v3
kill -TERM $agent "$etcd"
ends 143 'all were told to end'
gone 'all were told to end'

begin etcd
kill -KILL "$etcd"
ends 69 'etcd was killed'
gone 'etcd was killed'
grep -q "this job's own, has ended: " said || fail 'the end of etcd is not told'

# What is killed when the guard dies, which costs a restart, is not etcd.
begin etcd-v3
child_of $agent rankrun-guard && kill -KILL "$found"
read -r -t 180 -u 3 worker || fail 'no worker was started after the guard was killed'
kill -0 "$etcd" || fail 'etcd was killed when the guard died'
kill -TERM $agent
ends 143 'the guard was killed'
gone 'the guard was killed'
exit 0
