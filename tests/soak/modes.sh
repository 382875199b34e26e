#!/usr/bin/env bash
# ranktrain's modes at world sizes 1, 2, 3, 4, 6 and 8, undisturbed and with ten of its workers killed at drawn moments, each
# on every backend that there is: one model in all. Prints the table of docs/ranktrain.md.
# BACKENDS= leaves tcp out; MODES="ddp fsdp", WORLDS="2 8", KILLS=10 and SEED=1 play some of it. nccl is tried where a GPU is (one for each worker), and
# over the stand-ins of tests/fakes where RANKTRAIN_CUDA and NCCL_LIB name them.
# deadline: 7200 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
KILLS=${KILLS:-10} RANDOM=${SEED:-1} failed=0 port=29700
steps=60 every=2
common=(--steps=$steps --samples=960 --checkpoint-every=$every --log-every=0 --collective-timeout=20)
backends=(${BACKENDS-tcp})
"$BIN/ranktrain" --device=cuda --steps=1 --samples=96 >/dev/null 2>&1 && backends+=(nccl)

model() { grep -ohE 'model [0-9a-f]{64}$' "$@" | grep -oE '[0-9a-f]{64}$' | sort -u; }

# One more than the world where one of them only serves.
ranks() { [ "$1" = ps ] && echo $(($2 + 1)) || echo "$2"; }

arguments() { # arguments MODE WORLD BACKEND
    local a=("--mode=$1" "--dist-backend=$3")
    [ "$1" = dp ] && a+=("--devices=$2")
    [ "$3" = nccl ] && a+=(--device=cuda)
    echo "${a[@]}"
}

undisturbed() { # undisturbed MODE WORLD BACKEND
    local n
    n=$(ranks "$1" "$2") port=$((port + 1))
    [ "$1" = dp ] && n=1
    # shellcheck disable=SC2046
    MASTER_PORT=$port timeout 300 "$BIN/ranktrain" "${common[@]}" --spawn="$n" $(arguments "$@") >"$TMPDIR/said" 2>&1
    model "$TMPDIR/said"
}

# A run of the harness: the faults are its own, and so is the verdict.
killed() { # killed MODE WORLD BACKEND
    local n out=$TMPDIR/out step=0 k rest
    n=$(ranks "$1" "$2")
    [ "$1" = dp ] && n=1
    rm -rf "$out"
    rest=$(arguments "$@")
    {
        echo "scenario: modes"
        echo "cluster: {nodes: 1}"
        echo "job:"
        echo "  nnodes: 1"
        echo "  workers_per_node: $n"
        echo "  max_restarts: $((KILLS + 2))"
        echo "  rdzv_conf: $patient_map"
        echo "  run: [ranktrain, ${common[*]/%/,} ${rest// /, }, \"--checkpoint-dir={shared}/ckpt\"]"
        echo "timeline:"
        for ((k = 0; k < KILLS; k++)); do
            step=$((k * (steps - 8) / KILLS + 2 + RANDOM % 4))
            echo "  - {id: kill$k, when: {step: $step}, fault: worker-kill, on: random of workers}"
        done
        echo "expect: {outcome: succeeded, restarts: $KILLS, model: same-as-undisturbed}"
        echo "limits: {total: 5m}"
    } >"$TMPDIR/modes.yaml"
    timeout 400 "$BIN/rankquake" run --isolation namespaces --seed "$RANDOM" "$TMPDIR/modes.yaml" --out "$out" >"$TMPDIR/said" 2>&1
    case $? in
    0) ;;
    2) only_harness_was_late "$TMPDIR/said" || { echo "verdict open" && return; } ;;
    *) echo "failed" && return ;;
    esac
    model -r "$out"/*/logs
}

declare -A seen
cell() { # cell MODEL...: notes it and prints it short
    case $* in
    *' '* | '' | failed | 'verdict open')
        failed=1
        cp "$TMPDIR/said" "$TMPDIR/failed-$mode-$world" 2>/dev/null
        printf ' %s |' "${*:-none}"
        ;;
    *)
        seen[$backend]+="$1 "
        printf ' %.8s |' "$1"
        ;;
    esac
}

echo '| backend | mode | world | undisturbed | 10 kills |'
echo '|---|---|---|---|---|'
for backend in "${backends[@]}"; do
    for mode in ${MODES:-ddp dp fsdp manual ps zero}; do
        # One process has nothing to exchange.
        [ "$backend" = nccl ] && [ "$mode" = dp ] && continue
        for world in ${WORLDS:-1 2 3 4 6 8}; do
            printf '| %s | %s | %s |' "$backend" "$mode" "$world"
            # shellcheck disable=SC2046
            cell $(undisturbed $mode "$world" "$backend")
            # shellcheck disable=SC2046
            cell $(killed $mode "$world" "$backend")
            echo
        done
    done
    n=$(tr ' ' '\n' <<<"${seen[$backend]}" | grep . | sort -u | wc -l)
    [ "$n" = 1 ] || { echo "$n models over $backend" && failed=1; }
done
for f in "$TMPDIR"/failed-*; do
    [ -e "$f" ] && echo "--- $f" && tail -n 30 "$f"
done
exit $failed
