# What the history of a run on hosts of one kernel, whose clocks are 0 apart, tells of their bounds: of "clock", as each second
# tells it, and of "stamp", what helpers have stamped, without their own lateness: how many, the median and the worst, in ms. And "wrong":
# how many the truth does not lie in.
function number(key) { return match($0, "\"" key "\":-?[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
function abs(n) { return n < 0 ? -n : n }
function told(kind, v, n,    i, k, x) {
    for (i = 2; i <= n; i++) {
        x = v[i]
        for (k = i - 1; k > 0 && v[k] > x; k--) v[k + 1] = v[k]
        v[k + 1] = x
    }
    if (n) printf "%s %d %.3f %.3f\n", kind, n, v[int((n + 1) / 2)] / 1e6, v[n] / 1e6
}
/"kind":"clock"/ {
    clock[++clocks] = number("bound_ns")
    wrong += abs(number("ahead_ns")) > number("bound_ns") + 1
}
/"there":/ {
    stamp[++stamps] = number("bound") - number("late") / 2
    wrong += abs(number("t") - number("there")) > number("bound") + 1
}
END {
    told("clock", clock, clocks)
    told("stamp", stamp, stamps)
    if (clocks && stamps) print "wrong", wrong + 0
}
