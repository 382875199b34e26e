#!/usr/bin/env bash
# Everything that has a name can be explained, and what explain gives as an example is accepted: faults
# by lint in a scenario, verbs by doing what they show.
# deadline: 480 s
set -u
rq=$BIN/rankquake
dir=$TMPDIR/explain
mkdir "$dir"
bad=0
fail() {
    echo "$*"
    bad=1
}
explained() { # explained NAME PATTERN
    "$rq" explain "$1" >"$dir/said" 2>&1 || fail "explain $1: exit $?: $(cat "$dir/said")"
    grep -q -- "$2" "$dir/said" || fail "explain $1 does not say $2: $(cat "$dir/said")"
}
linted() { # linted WHAT FILE...
    "$rq" lint "${@:2}" >"$dir/said" 2>&1 || fail "the examples of $1: $(cat "$dir/said")"
}
names() { "$rq" list "$1" | sed -n 's/^\([a-z][a-z_-]*\) .*/\1/p'; }

faults=$(names faults)
[ "$(wc -w <<<"$faults")" -ge 5 ] || fail "only these faults: $faults"
examples=()
for fault in $faults; do
    explained "$fault" "^$fault: "
    example=$(sed -n 's/^ *example: //p' "$dir/said")
    [ -n "$example" ] || { fail "$fault has no example"; continue; }
    store=
    [ "$fault" = store-full ] && store=', store: etcd, store_quota_mb: 16'
    cat >"$dir/$fault.yaml" <<END
cluster: {nodes: 4, start: 3, racks: [[n0, n1], [n2, n3]]$store}
job: {nnodes: "2:4", workers_per_node: 2, run: [ranktrain, --steps=120]}
timeline:
  - $example
END
    examples+=("$dir/$fault.yaml")
done
linted faults "${examples[@]}"
examples=()
for check in $(names checks); do
    explained "$check" "^$check: "
    # A key may have the same name, and is explained before it.
    example=$(sed -n "/^$check: /,\$ s/^ *example: //p" "$dir/said" | tail -n 1)
    case $example in
    'expect: '*)
        cat >"$dir/$check.yaml" <<END
cluster: {nodes: 3}
job: {nnodes: "2:3", workers_per_node: 2, run: [ranktrain, --steps=120]}
timeline:
  - {id: hit, when: {step: 50}, fault: worker-kill, on: rank 1}
probe: {served: {cmd: [curl, -sf, 'http://n0:8080/health'], on: n0}}
$example
END
        examples+=("$dir/$check.yaml")
        ;;
    'rankquake run '*)
        read -ra words <<<"${example#rankquake run }"
        if [ ${#words[@]} = 1 ]; then examples+=("${words[@]}"); else linted "$check" "${words[@]}"; fi
        ;;
    *) fail "$check has no example" ;;
    esac
done
mapfile -t examples < <(printf '%s\n' "${examples[@]}" | sort -u)
[ ${#examples[@]} -ge 10 ] || fail "only these examples of checks: ${examples[*]}"
linted checks "${examples[@]}"

sections='cluster job checkpoint observe when random replay expect log limits repeat scenario'
for section in $sections; do
    explained "$section" "^$section: "
    keys=$(sed -n 's/^  \([a-z_]*\)   *.*/\1/p' "$dir/said")
    [ -n "$keys" ] || fail "$section has no keys"
    explained "$section.${keys##*$'\n'}" "^$section.${keys##*$'\n'}: " # all of them: tests/harness/verbs/test_explain
done

for preset in hf-trainer lightning tqdm; do explained $preset "  step: '"; done
for weights in acme byterobust hsdp llama3 uniform; do explained $weights '^  worker-kill '; done
explained events 'are judged:'

verbs=$("$rq" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 8 ] || fail "only these verbs: $verbs"
for verb in $verbs; do
    explained "$verb" "^usage: rankquake $verb"
    "$rq" "$verb" --help >"$dir/help" 2>&1
    tail -n "$(wc -l <"$dir/help")" "$dir/said" | cmp -s - "$dir/help" || fail "$verb --help says something else than explain"
done

# Every example of a verb is typed as it stands, with a run that is there in place of the one it names:
# one that has ended, or for enter and halt one that goes on.
rq=$(cd "$BIN" && pwd)/rankquake
cp -R scenarios "$dir" && cd "$dir" || exit 1
# How quick it is, is not asked here: a machine that stands still cannot be.
sed -i '/_within:/d' scenarios/*.yaml scenarios/*/*.yaml
# Those of try and crashpoints take their time, and are typed by try.sh and crashpoints.sh.
for verb in run $(sed 's/\<run\>//; s/\<enter\>//; s/\<halt\>//; s/\<try\>//; s/\<crashpoints\>//' <<<"$verbs") enter halt; do
    example=$("$rq" help "$verb" | sed -n 's/^example: rankquake //p')
    [ -n "$example" ] || { fail "$verb has no example"; continue; }
    if [ "$verb" = enter ]; then
        cat >"$dir/waits.yaml" <<<'{scenario: waits, cluster: {nodes: 1, store: none}, job: {run: [sleep, "1000"]}}'
        mkfifo "$dir/live"
        "$rq" run "$dir/waits.yaml" --out "$dir/live-runs" >"$dir/live" 2>&1 &
        exec 7<"$dir/live"
        while IFS= read -r -t 180 -u 7 line && [[ $line != *'round 1: 1 worker'* ]]; do :; done
    fi
    case $verb in
    enter | halt) run=$(echo live-runs/*) ;;
    *) run=$(echo runs/tour-*) ;;
    esac
    # torchrun is not everywhere.
    read -ra words <<<"$(sed "s,runs/tour-[0-9-]*,$run,; s/--launcher torchrun/--launcher rankrun/" <<<"$example")"
    "$rq" "${words[@]}" >"$dir/said" 2>&1
    rc=$?
    case $verb$rc in
    *0 | doctor4) ;;
    shrink64) grep -q "it passed" "$dir/said" || fail "shrink of a run that passed: $(cat "$dir/said")" ;;
    run4) tail -n 1 "$dir/said"; exit $((bad ? 1 : 77)) ;;
    *) fail "rankquake $example: exit $rc: $(cat "$dir/said")" ;;
    esac
    [ "$verb" != halt ] || { cat <&7 >/dev/null; exec 7<&-; wait; }
done

"$rq" explain worker-kil >"$dir/said" 2>&1 && fail 'a name that nobody has was explained'
grep -q 'did you mean "worker-kill"' "$dir/said" || fail 'the nearest name was not given'
exit $bad
