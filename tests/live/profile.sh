#!/usr/bin/env bash
# An impairment that changes while it lasts: the second step of its profile is felt, counted and gone with the fault.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

runs 'a link that becomes worse' 0 scenarios/network/link-degrades.yaml
recorded 'a link that becomes worse' '"kind":"fault-fired","id":"worse".*"profile":\["0: delay 1ms","300000000: delay 40ms"\]'
recorded 'a link that becomes worse' '"source":"wire","kind":"fault-evidence","id":"worse"'
# Between two steps of the job are several messages to and from n2, each 40 ms late from the second step of the profile on. The
# wire is counted when that begins. What it holds back is let go just before the end is recorded: the last steps do not count.
awk -F'"t":' '
    { split($2, a, ","); t = a[1] + 0 }
    /"kind":"fault-in-force","id":"worse"/ { from = t + 300e6 }
    /"kind":"fault-recovered","id":"worse"/ { to = t }
    /"kind":"wire"/ && from && t > from - 50e6 && !to { counted++ }
    /"kind":"step"/ && match($0, /"step":[0-9]+/) {
        step = substr($0, RSTART + 7, RLENGTH - 7) + 0
        if (!(step in first)) { first[step] = t; last = step > last ? step : last }
    }
    END {
        for (s in first) if ((s + 1) in first) {
            took = first[s + 1] - first[s]
            if (first[s] > from && first[s + 1] < to - 50e6) during[++n] = took
            if (first[s] > to && (!after || took < after)) after = took
        }
        # The half-way one: what is read late, and then together, makes one step long and the next ones short.
        for (i = 1; i <= n; i++) {
            shorter = 0
            for (k = 1; k <= n; k++) shorter += during[k] < during[i] || (during[k] == during[i] && k < i)
            if (shorter == int(n / 2)) middle = during[i]
        }
        print "a step took", middle / 1e6, "ms, then", after / 1e6, "ms; counted", counted
        exit !(middle > 40e6 && after < middle && counted)
    }' "$dir"/out/*/history.jsonl >"$dir/steps" || fail "a link that becomes worse: $(cat "$dir/steps")"
exit $failed
