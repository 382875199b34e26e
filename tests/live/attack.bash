# attack: a store that is attacked while a job of two nodes runs beside it. To be sourced at the root of the tree, then
# begin_attacked CONF [OPTION...] (of rankrun store), attack NAME as often as one likes, end_attacked.
BIN=$(realpath "$BIN")
attacker=$(realpath "${OUT:-build/release}/tests/live/spawn_attack")
cd "$TMPDIR" || exit 1
processes=()
fail() {
    echo "FAILED: $*"
    tail -n 20 said.* 2>/dev/null | cut -c1-300
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    exec 5>&- 6>&- 7>&- 8>&-
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait
}
trap finish EXIT

begin_attacked() { # sets store and port
    local conf=$1 line n
    shift
    exec 3< <(ulimit -n 1024 && exec "$BIN/rankrun" store --host 127.0.0.1 --port 0 "$@" 2>said.store)
    store=$!
    processes=("$store")
    read -r -t 180 -u 3 line || fail 'the store did not start'
    port=${line##*:}
    rm -f end beat begun hold rounds
    mkfifo end beat begun hold
    exec 5<>hold 6<>begun 7<>end 8<>beat
    # It tells when it begins, and ends when it is told to.
    cat >worker <<'WORKER'
#!/bin/bash
echo "round $RANKRUN_ROUND" >>rounds
echo >begun
read -r _ <end
WORKER
    chmod +x worker
    for n in 2 3; do
        timeout 600 "$BIN/rankrun" --nnodes 2 --max-restarts 3 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id attacked \
            --local-addr "127.0.0.$n" --rdzv-conf "$conf,join_timeout=60" --no-python ./worker \
            5>&- 6>&- 7>&- 8>&- >"said.agent-$n" 2>&1 &
        processes+=($!)
    done
    for n in 2 3; do
        read -r -t 180 -u 6 _ || fail 'the job does not begin'
    done
    exec 4< <(exec "$attacker" "$port" beats <beat 5>&- 6>&- 7>&- 8>&- 2>said.beats)
    beats=$!
    processes+=("$beats")
    read -r -t 180 -u 4 line || fail 'no beat is taken before any attack'
}

# Whether somebody who comes now is answered; sets newcomer_us.
newcomer() {
    timeout 300 "$attacker" "$port" newcomer >said.newcomer 2>&1 || return 1
    newcomer_us=$(awk '$1 == "newcomer_us" { print $2 }' said.newcomer)
}

# Sets peak_kb (of the store so far), and how long who came waited while it was on, during_us, and after it, back_us.
attack() {
    local attacking line=
    exec 9< <(exec timeout 300 "$attacker" "$port" "$1" <hold 5>&- 6>&- 7>&- 8>&- 2>"said.attack-$1")
    attacking=$!
    while [ "${line-}" != holding ]; do
        read -r -t 180 -u 9 line || fail "$1 does not do what it should"
        [ "$line" = holding ] || echo "$line"
    done
    newcomer || fail "nobody can come in during $1, or is answered"
    during_us=$newcomer_us
    echo >&5
    wait "$attacking" || fail "$1: exit $?"
    newcomer || fail "nobody can come in after $1, or is answered"
    back_us=$newcomer_us
    peak_kb=$(awk '/^VmHWM:/ { print $2 }' "/proc/$store/status") || fail "$1: the store is no more"
    [ "${BUILD-}" = asan ] || [ "$peak_kb" -le $((256 * 1024)) ] || fail "$1: the store needs $((peak_kb / 1024)) MB, and 256 are promised"
    kill -0 "$beats" 2>/dev/null || fail "$1: a beat was not taken"
    [ "$(sort -u rounds | wc -l)" = 1 ] || fail "$1: the job has lost its round"
}

# Sets most_us, of the slowest beat, and what is told of all, line_of_beats.
end_attacked() {
    local process line
    echo >&8
    read -r -t 180 -u 4 line || fail 'a beat was not taken'
    wait "$beats" || fail 'a beat was not taken'
    most_us=${line##* } line_of_beats=$line
    echo >&7
    echo >&7
    for process in "${processes[@]:1:2}"; do
        wait "$process" || fail "an agent ended with $?"
    done
    [ "$(wc -l <rounds)" = 2 ] || fail "the job began $(wc -l <rounds) workers and has two"
    kill -TERM "$store"
    cat <&3 >/dev/null # until it is gone
    processes=()
    exec 5>&- 6>&- 7>&- 8>&-
}
