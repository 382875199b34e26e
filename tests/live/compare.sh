#!/usr/bin/env bash
# compare: rankrun beside one that fails after a restart. One table, the checks that explain the difference, pages, and an
# exit code that says whether all could be judged, not who was better.
# deadline: 480 s
set -u
. tests/live/patience.bash
rq=$(realpath "$BIN/rankquake") rankrun=$(realpath "$BIN/rankrun")
cd "$(dirname "$0")/../.." || exit 1
dir=$TMPDIR/compare
mkdir -p "$dir/bad" || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache
wrong=0
fail() {
    echo "$*"
    cat "$dir/said"
    wrong=1
}
compare() { # compare CODE ARGUMENT...
    local code=$1 rc
    shift
    timeout 300 "$rq" compare --out "$dir/out" "$@" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "compare $*: exit $rc, wanted $code"
}
says() { grep -qF -- "$1" "$dir/said" || fail "it did not say: $1"; }

cat >"$dir/bad/rankrun" <<END
#!/bin/bash
# A launcher with a planted bug: whoever had to restart ends with 1, whatever came of it.
$rankrun "\$@" 2>"\$TMPDIR/said" || exit
! grep -q 'round 1, local rank' "\$TMPDIR/said"
END
chmod +x "$dir/bad/rankrun"
cat >"$dir/killed.yaml" <<END
scenario: killed
cluster: {nodes: 2}
job:
  nnodes: 2
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=40, --checkpoint-every=10, --collective-timeout=6, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {when: {step: 17}, fault: worker-kill, on: rank 1}
limits: {total: 1m}
END

compare 64 --launcher rankrun "$dir/killed.yaml"
says 'name at least two launchers'
compare 64 --launcher rankrun --launcher rankrun@/no/tree "$dir/killed.yaml"
says 'there is no directory /no/tree'
compare 64 --launcher rankrun --launcher rankrun@woody "$dir/killed.yaml"
says 'sudo ci/peers'
compare 64 --launcher rankrun --launcher /no/torchrun "$dir/killed.yaml"
says 'killed.yaml under torchrun: launcher: there is no program /no/torchrun'
[ -e "$dir/out" ] && fail 'it began although not everything was valid'

timeout 300 "$rq" run "$dir/killed.yaml" --out "$dir/alone" >"$dir/said" 2>&1 </dev/null
[ $? = 4 ] && { tail -n 1 "$dir/said"; exit 77; }

compare 0 --launcher rankrun --launcher "$dir/bad/rankrun" "$dir/killed.yaml"
grep -qE '^killed +passed, [0-9.]+ s +failed, [0-9.]+ s$' "$dir/said" || fail 'the row of the table'
says '  outcome'
says 'rankrun: succeeded'
says 'expected: '
says '/comparison.html'
grep -q 'rankrun-2: ' "$dir/said" || fail 'the planted bug is not explained'
run=$(echo "$dir"/out/compare-*)
for file in comparison.html comparison.json comparison.txt; do
    [ -s "$run/$file" ] || fail "no $file"
done
grep -o 'href="[^"]*"' "$run/comparison.html" | sed 's/href="//; s/"//' | grep -v '^data:' |
    while read -r link; do [ -e "$run/$link" ] || echo "$link"; done >"$dir/links"
[ -s "$dir/links" ] && fail "links that lead nowhere: $(cat "$dir/links")"
[ "$(grep -o 'report.html' "$run/comparison.html" | wc -l)" = 2 ] || fail 'the page does not link to both runs'

# One that is no launcher at all leaves a hole in the table, and that is no answer.
mkdir "$dir/dead"
printf '#!/bin/sh\necho "no licence left" >&2\nexit 7\n' >"$dir/dead/rankrun"
chmod +x "$dir/dead/rankrun"
rm -rf "$dir/out"
compare 3 --launcher rankrun --launcher "$dir/dead/rankrun" "$dir/killed.yaml"
grep -qE '^killed +passed, [0-9.]+ s +broken$' "$dir/said" || fail 'the row of a launcher that ends at once'
says 'the job failed in the control run'

rm -rf "$dir/out"
compare 1 --strict --format json --launcher rankrun --launcher "$dir/bad/rankrun" "$dir/killed.yaml"
sed -n '/^{/p' "$dir/said" >"$dir/json"
grep -q '"differences":\[.*"outcome"' "$dir/json" || fail 'the differences are not in the JSON'

# Ctrl-C as a run begins, which takes no signals yet: nothing follows it.
mkfifo "$dir/line"
setsid "$rq" compare --out "$dir/out" --launcher rankrun --launcher "$dir/bad/rankrun" "$dir/killed.yaml" >"$dir/line" 2>&1 </dev/null &
compared=$!
exec 5<"$dir/line"
read -r -t 180 line <&5 && kill -INT -- -$compared
timeout 300 cat <&5 >"$dir/said"
wait $compared
rc=$?
[ "$line" = 'killed under rankrun' ] && [ $rc = 130 ] || fail "Ctrl-C after \"$line\": exit $rc"
says 'not begun'
exit $wrong
