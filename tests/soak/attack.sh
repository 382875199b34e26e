#!/usr/bin/env bash
# tests/live/attack.sh with all that spawn_attack can do, from the agents' own address and from another one, with a token
# and without, TURNS times (3) each, and with figures: the slowest beat is to take less than a third of the 500 ms that
# are between two, and who comes is to be answered within a second when an attack is over. The job has the default limits.
# deadline: 1200 s
set -u
. tests/live/attack.bash
bad=0
all='load answers fill watches half-open slow large storm leases keys deep deletion pages'
printf '| attack | from | token | peak MB | who comes during it, ms | after it, ms |\n|---|---|---|---|---|---|\n'
campaign() { # campaign FROM TOKEN
    local from=$1 name
    if [ -n "$2" ]; then
        export RANKRUN_STORE_TOKEN=$2 ATTACK_TOKEN=$2
    else
        unset RANKRUN_STORE_TOKEN ATTACK_TOKEN
    fi
    begin_attacked last_call_timeout=2s
    for ((turn = 1; turn <= ${TURNS:-3}; turn++)); do
        for name in $all; do
            ATTACK_FROM=$from attack "$name" >said.line
            printf '| %s | %s | %s | %d | %d.%d | %d.%d |\n' "$(tr '\n' ';' <said.line)" "$from" "${2:+shown}" \
                $((peak_kb / 1024)) $((during_us / 1000)) $((during_us / 100 % 10)) $((back_us / 1000)) \
                $((back_us / 100 % 10))
            [ "$back_us" -le 1000000 ] || { echo "$name: back after $((back_us / 1000)) ms"; bad=1; }
        done
    done
    end_attacked
    echo "the slowest of the beats took $((most_us / 1000)) ms: $line_of_beats"
    [ "$most_us" -le 166667 ] || { echo 'a beat took more than a third of the time between two'; bad=1; }
}
campaign 127.0.0.1 ''
campaign 127.0.0.9 ''
campaign 127.0.0.1 s3cret
exit $bad
