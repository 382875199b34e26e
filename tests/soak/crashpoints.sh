#!/usr/bin/env bash
# crashpoints finds nothing in ranktrain, alone and as two workers under rankrun, also where it makes its directory, saves beside the
# training or in parts, and on disks of their own; and finds each bug of tests/mutants/savers
# that is planted into how it saves: with the verdict and for the reasons that stand in the patch, by the smallest sequence,
# and for no others.
#   SAVERS='FILE ...'  those bugs only      STATES=N  so many states of each, less than 60: then one of the reasons is enough
# deadline: 3600 s
set -u
. tests/live/says.bash
command -v git >/dev/null || { echo 'git is missing, which applies the patches'; exit 77; }
dir=$TMPDIR/crashpoints
mkdir -p "$dir/desk" || exit 1
cp -R "$BIN" "$dir/bin" && rq=$dir/bin/rankquake || exit 1
export NO_COLOR=1
root=$PWD
job=(--steps=8 --checkpoint-every=2 --checkpoint-dir=ckpt --checkpoint-keep=2 --samples=256)
field() { # field NAME PATCH
    sed -n "1,/^diff /s/^$1: *//p" "$2"
}
# The job with the bug: what the patch touches, compiled from a copy, before what was built of the rest.
flags=$(sed 's/ -DRANKQUAKE_VERSION=[^ ]*//' "$OUT/.flags")
plant() { # plant PATCH TO
    local copy=$dir/copy source objects=()
    rm -rf "$copy" && mkdir -p "$copy/scenarios" && cp -R scenarios/jobs "$copy/scenarios/" || return 1
    (cd "$copy" && GIT_CEILING_DIRECTORIES=$dir git apply -C1 "$root/$1") || return 1
    for source in $(sed -n 's,^+++ b/\(.*\.c\)$,\1,p' "$1"); do
        objects+=("$copy/$(basename "$source" .c).o")
        (cd "$copy" && $flags -DRANKQUAKE_VERSION='"planted"' -w -I"$root" -c -o "${objects[-1]}" "$source") || return 1
    done
    $flags -w -o "$2" "$OUT/scenarios/jobs/ranktrain/main.o" "${objects[@]}" -Wl,--start-group \
        "$OUT"/lib{job,base}.a -Wl,--end-group -pthread -levent_extra -levent_core -lz -lm -ldl
}
tries() { # tries CODE STATES WHAT WORKERS PROGRAM
    local launcher=()
    [ "$4" = 1 ] || launcher=(rankrun --standalone --nproc-per-node="$4")
    (cd "$dir/desk" && exec "$rq" crashpoints --max-states "${STATES:-$2}" --budget 20m --dir ckpt -- \
        "${launcher[@]}" "$5" "${job[@]}") >"$dir/said" 2>&1
    local rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$1" ] || fail "$3: exit $rc, wanted $1"
    echo "$3: $(sed -n 's/.* \([0-9]* tried in .*\)/\1/p' "$dir/said")"
}
finds() { # finds PATCH
    local name missing states
    name=$(basename "$1" .patch)
    plant "$1" "$dir/ranktrain" || { fail "$name: cannot be planted"; return; }
    # Of several workers, who goes on when one has died is tried among the others' states, in the default bound.
    states=60
    [ "$(field Workers "$1")" = 1 ] || states=400
    tries 1 $states "$name" "$(field Workers "$1")" "$dir/ranktrain"
    sed -n 's/^ *what *//p' "$dir/said" | sed 's/[0-9]\+/#/g' >"$dir/whats"
    sed -n 's/^[0-9]*\. \(.*\) ([0-9]* states\?)$/\1/p' "$dir/said" | grep -vxF -f <(field '\(Verdict\|Seldom\)' "$1") &&
        fail "$name: another verdict than $(field Verdict "$1")"
    grep -vxF -f <(field What "$1") "$dir/whats" | grep -vxE -f <(field Or "$1") && fail "$name: that reason was not planted"
    missing=$(not_found "$1")
    [ -n "${STATES-}" ] || [ -z "$missing" ] || fail "$name: not found: $missing"
}
# Reasons that were planted and not told. What comes of who is first among ranks may be told at another point, Or, a pattern; and
# by another verdict, Seldom.
not_found() { # not_found PATCH
    grep -qxE -f <(field Or "$1") "$dir/whats" || field What "$1" | grep -vxF -f "$dir/whats"
}
# The bug on two nodes that share the directory: the death of a node's rank before its part, while the other node goes on.
finds_on_nodes() { # finds_on_nodes PATCH
    local name missing words rc
    name="$(basename "$1" .patch) on two nodes"
    plant "$1" "$dir/ranktrain" || { fail "$name: cannot be planted"; return; }
    words=$(printf '%s, ' "${job[@]/=ckpt/={shared\}/ckpt}" | sed 's/--checkpoint-dir=[^,]*/"&"/')
    cat >"$dir/desk/planted.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  run: [$dir/ranktrain, ${words%, }]
  checkpoint: {max_states: ${STATES:-400}, deaths: [process], budget: 20m}
END
    (cd "$dir/desk" && exec "$rq" crashpoints planted.yaml) >"$dir/said" 2>&1
    rc=$?
    [ $rc = 1 ] || fail "$name: exit $rc, wanted 1"
    sed -n 's/^ *what *//p' "$dir/said" | sed 's/ on n[01]//; s,shared/ckpt/,,g; s/[0-9]\+/#/g' >"$dir/whats"
    missing=$(not_found "$1")
    [ -n "${STATES-}" ] || [ -z "$missing" ] || fail "$name: not found: $missing"
    echo "$name: $(sed -n 's/.* \([0-9]* tried in .*\)/\1/p' "$dir/said")"
}
if [ -n "${SAVERS-}" ]; then # those alone
    for patch in $SAVERS; do
        finds "$patch"
        [[ $patch != *commit-before-peers* ]] || finds_on_nodes "$patch"
    done
    exit $bad
fi
tries 0 400 'ranktrain alone' 1 ranktrain
# Directories that the job has made last, too.
plain=("${job[@]}")
job=("${plain[@]/=ckpt/=ckpt/of/run}")
tries 0 100 'ranktrain in directories that it makes' 1 ranktrain
job=("${plain[@]}")
[ -n "${STATES-}" ] || tries 0 400 'two workers' 2 ranktrain
# Beside the training and in parts; and on disks of their own, of which one may lose its power.
job=("${plain[@]}" --checkpoint-sharded --checkpoint-async)
tries 0 400 'two workers, in parts beside the training' 2 ranktrain
if [ -z "${STATES-}" ]; then
    job=("${plain[@]}" --checkpoint-async)
    tries 0 400 'beside the training' 1 ranktrain
    job=("${plain[@]}" --checkpoint-sharded)
    tries 0 400 'two workers, in parts' 2 ranktrain
    cat >"$dir/desk/local.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  run: [ranktrain, --steps=6, --checkpoint-every=2, --checkpoint-keep=2, --samples=256, "--checkpoint-dir={disk}/ckpt"]
  checkpoint: {max_states: 60, budget: 20m}
END
    (cd "$dir/desk" && exec "$rq" crashpoints local.yaml) >"$dir/said" 2>&1 || fail "disks of their own: exit $?"
    echo "disks of their own: $(sed -n 's/.* \([0-9]* tried in .*\)/\1/p' "$dir/said")"
fi
job=("${plain[@]}")
for patch in tests/mutants/savers/*.patch; do
    finds "$patch"
done
finds_on_nodes tests/mutants/savers/commit-before-peers.patch
exit $bad
