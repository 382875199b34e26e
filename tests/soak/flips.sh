#!/usr/bin/env bash
# Bits of memory that flip, at places drawn from a seed, sorted by what became of them: FLIPS (100) of them from seed FIRST (1) on,
# a run each. One bit of one of three workers' weights, or of the velocity that the optimizer keeps, changes at step 12 of 20.
#
#   masked    the model is the control run's, bit by bit
#   detected  the job itself noticed: a worker failed, be it over its own check or by a crash
#   silent    the job ended well with another model, and told nobody
#   hung      a limit of the run ended it
#
# Of the silent ones the check `weights` must name the rank that was struck, from the step after the flip on, or from a later one
# where the bit lay so low in the velocity that rounding hid it: nobody else would. Prints the table for docs/measurements.md; exits 1 where a silent flip is not named.
# deadline: 3600 s
set -u
FLIPS=${FLIPS:-100} FIRST=${FIRST:-1}
export XDG_CACHE_HOME=$TMPDIR/cache LC_ALL=C.UTF-8
dir=$TMPDIR/flips
mkdir "$dir"

cat >"$dir/flip.yaml" <<'END'
cluster: {nodes: 1}
vars: {region: weights}
job:
  workers_per_node: 3
  max_restarts: 0
  run: [ranktrain, --steps=20, --checkpoint-every=20, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: flip, when: {step: 12}, fault: memory-flip, with: {region: "{region}"}, on: random of workers}
expect:
  model: same-as-undisturbed
  weights: same-as-undisturbed
limits: {total: 60s}
END

# Without the picture of what was told, a verdict is one line of JSON: a check and what it found, one each.
status() { # status CHECK: of the run in $run
    sed -n "s/.*\"check\":\"$1\"[^}]*\"status\":\"\([a-z]*\)\".*/\1/p" <<<"$flat"
}
declare -A count
named=0 unnamed=
for region in weights velocity; do
    for ((seed = FIRST; seed < FIRST + FLIPS / 2; seed++)); do
        rm -rf "$dir/out"
        "$BIN/rankquake" run "$dir/flip.yaml" --seed $seed --set "vars.region=$region" --out "$dir/out" >"$dir/said" 2>&1
        run=$(echo "$dir"/out/*/)
        flat=$(tr -d '\n' <"$run/verdict.json" | sed 's/},/},\n/g')
        rank=$(sed -n 's/.*flip: memory-flip on [^ ]* (rank \([0-9]*\)).*/\1/p' "$dir/said" | head -n 1)
        if [ "$(status fired)" != pass ]; then
            kind=unfelt
        elif [ "$(status liveness)" = fail ]; then
            kind=hung
        elif [ "$(status outcome)" = fail ]; then
            kind=detected
        elif [ "$(status model)" = pass ]; then
            kind=masked
        else
            kind=silent
            if grep -qE "weights differ from step (1[2-9]|20) of round 1 on: rank $rank " "$dir/said"; then
                named=$((named + 1))
            else
                unnamed="$unnamed $region/$seed"
                grep -E ' (weights|model) ' "$dir/said"
            fi
        fi
        count[$region/$kind]=$((${count[$region/$kind]:-0} + 1))
        echo "$region seed $seed: $kind" >&2
    done
done
echo '| region | flips | masked | detected | silent | hung |'
echo '|---|---|---|---|---|---|'
for region in weights velocity; do
    echo "| $region | $((FLIPS / 2)) | ${count[$region/masked]:-0} | ${count[$region/detected]:-0} | ${count[$region/silent]:-0} | ${count[$region/hung]:-0} |"
done
echo "$named silent flips were named by the check weights; not named:${unnamed:- none}; unfelt: $((${count[weights/unfelt]:-0} + ${count[velocity/unfelt]:-0}))"
[ -z "$unnamed" ]
