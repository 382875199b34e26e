# attack: a store that is attacked while a job of two nodes runs beside it. To be sourced at the root of the tree, then
# begin_attacked CONF [OPTION...] (of rankrun store), attack NAME SECONDS as often as one likes, end_attacked.
BIN=$(realpath "$BIN")
attacker=$(realpath "${OUT:-build/release}/tests/live/spawn_attack")
cd "$TMPDIR" || exit 1
processes=()
fail() {
    echo "FAILED: $*"
    tail -n 20 said.* 2>/dev/null | cut -c1-300
    exit 1
}
finish() {
    exec 7>&- 8>&-
    kill -KILL "${processes[@]}" 2>/dev/null
    wait
}
trap finish EXIT

begin_attacked() { # sets store and port
    local conf=$1 line n
    shift
    exec 3< <(ulimit -n 1024 && exec "$BIN/rankrun" store --host 127.0.0.1 --port 0 "$@" 2>said.store)
    store=$!
    processes=("$store")
    read -r -t 30 -u 3 line || fail 'the store did not start'
    port=${line##*:}
    rm -f end beat rounds
    mkfifo end beat
    exec 7<>end 8<>beat
    # Its end is that of the fifo; each start is a line.
    cat >worker <<'WORKER'
#!/bin/bash
echo "round $RANKRUN_ROUND" >>rounds
read -r _ <end
WORKER
    chmod +x worker
    for n in 2 3; do
        timeout 600 "$BIN/rankrun" --nnodes 2 --max-restarts 3 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id attacked \
            --local-addr "127.0.0.$n" --rdzv-conf "$conf,join_timeout=60" --no-python ./worker \
            7>&- 8>&- >"said.agent-$n" 2>&1 &
        processes+=($!)
    done
    "$attacker" "$port" beats <beat 7>&- 8>&- >said.beats 2>&1 &
    beats=$!
    processes+=("$beats")
    "$attacker" "$port" newcomer >said.newcomer 2>&1 || fail 'nobody is answered before any attack'
}

# Sets peak_kb (of the store so far) and back_us: how long the first one afterwards waited.
attack() {
    timeout 120 "$attacker" "$port" "$1" "$2" 7>&- 8>&- >"said.attack-$1" 2>&1 || fail "$1: exit $?"
    timeout 60 "$attacker" "$port" newcomer 7>&- 8>&- >said.newcomer 2>&1 ||
        fail "nobody can come in after $1, or is answered"
    back_us=$(awk '$1 == "newcomer_us" { print $2 }' said.newcomer)
    peak_kb=$(awk '/^VmHWM:/ { print $2 }' "/proc/$store/status") || fail "$1: the store is no more"
    [ "$peak_kb" -le $((256 * 1024)) ] || fail "$1: the store needs $((peak_kb / 1024)) MB, and 256 are promised"
    kill -0 "$beats" 2>/dev/null || fail "$1: a beat was not taken"
    [ "$(sort -u rounds | wc -l)" = 1 ] || fail "$1: the job has lost its round"
}

# Sets most_us: the slowest beat.
end_attacked() {
    local process
    echo >&8
    wait "$beats" || fail 'a beat was not taken'
    most_us=$(awk '$1 == "beats" { print $NF }' said.beats)
    echo >&7
    echo >&7
    for process in "${processes[@]:1:2}"; do
        wait "$process" || fail "an agent ended with $?"
    done
    [ "$(wc -l <rounds)" = 2 ] || fail "the job began $(wc -l <rounds) workers and has two"
    kill -TERM "$store"
    cat <&3 >/dev/null # until it is gone
    processes=()
    exec 7>&- 8>&-
}
