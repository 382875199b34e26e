#!/usr/bin/env bash
# Whatever is wrong with a scenario, its job or the host: the real program says where, ends with the
# exit code for it, and starts nothing.
set -u
rq=$BIN/rankquake
cd "$(dirname "$0")/../.." || exit 1
verbs=(lint plan run)
dir=$TMPDIR/bad
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    cat "$dir/said"
    failed=1
}

# What a run would leave: its directory, or a process that outlives it and inherited its environment.
mark=BAD_INPUT_OF=$$
check_nothing_started() { # WHAT
    if [ -e "$dir/out" ]; then fail "$1: made a run directory"; fi
    if grep -slzxF "$mark" /proc/[0-9]*/environ >"$dir/left"; then
        fail "$1: left processes: $(cat "$dir/left")"
    fi
}

expect() { # expect CODE TEXT VERB FILE [ARGUMENT...]
    local code=$1 text=$2 verb=$3 file=$4 out=()
    shift 4
    [ "$verb" = run ] && out=(--out "$dir/out")
    env "$mark" timeout 300 "$rq" "$verb" "$file" "${out[@]}" "$@" >"$dir/stdout" 2>"$dir/said" </dev/null
    local rc=$?
    [ $rc = "$code" ] || fail "$verb $file: exit $rc, not $code"
    grep -qF -- "$text" "$dir/said" || fail "$verb $file: did not say: $text"
    check_nothing_started "$verb $file"
}

# The file on stdin is refused by every verb, with that text.
refused() { # refused NAME TEXT
    cat >"$dir/$1.yaml"
    for verb in "${verbs[@]}"; do expect 64 "$2" "$verb" "$dir/$1.yaml"; done
}

refused unknown-key '.yaml:1:18: job has no key "max_restart"; did you mean "max_restarts"?' \
    <<<'job: {run: [ls], max_restart: 1}'
refused wrong-type '.yaml:1:32: max_restarts must be a whole number' <<<'job: {run: [ls], max_restarts: many}'
refused unknown-fault '.yaml:2:37: there is no fault "worker-kil"; did you mean "worker-kill"?' <<'END'
job: {run: [ls]}
timeline: [{when: {step: 1}, fault: worker-kil, on: workers}]
END
# What the loader and the plan find wrong is told at once, and by every verb in the same words.
refused both '.yaml:1:18: job has no key "max_restart"; did you mean "max_restarts"?' <<'END'
job: {run: [ls], max_restart: 1}
timeline: [{when: {step: 1}, fault: worker-kil, on: workers}]
END
for verb in "${verbs[@]}"; do
    expect 64 '.yaml:2:37: there is no fault "worker-kil"; did you mean "worker-kill"?' "$verb" "$dir/both.yaml"
    cp "$dir/said" "$dir/both-$verb"
    cmp -s "$dir/both-lint" "$dir/both-$verb" || fail "$verb says otherwise what lint says"
done
refused no-target '.yaml:2:52: there is no n7: the cluster has 2 nodes, n0 first' <<'END'
job: {run: [ls]}
timeline: [{when: {step: 1}, fault: node-kill, on: n7}]
END
# Of every fault and parameter: tests/harness/plan/test_bad_arguments.c.
fault() { # fault NAME PLACE-AND-TEXT FAULT-AND-REST
    printf 'job: {run: [ls]}\ntimeline: [{when: {step: 1}, fault: %s}]\n' "$3" | refused "$1" "$2"
}
fault parameter '.yaml:2:71: node-cpu has no parameter "persent"; did you mean "percent"?' \
    'node-cpu, on: n1, with: {persent: 50}'
fault other-fault '.yaml:2:72: worker-kill has no parameter "share"; it takes signal' 'worker-kill, on: n1, with: {share: 50%}'
fault unit '.yaml:2:84: delay must be a duration such as 2s, not "5MiB"' 'net-delay, on: n1, with: {planes: data, delay: 5MiB}'
fault share '.yaml:2:69: share: "5" is not a share; write one of up to 100%, as in 1%' 'net-loss, on: n1, with: {share: 5}'
fault range '.yaml:2:71: percent: "4" is not a number from 5 to' 'node-cpu, on: n1, with: {percent: 4}'
fault type '.yaml:2:71: percent must be a single value, not a list' 'node-cpu, on: n1, with: {percent: [4]}'
fault kind '.yaml:2:52: node-kill cannot be aimed at workers; it takes nodes' 'node-kill, on: workers'
fault no-end '.yaml:2:63: for: worker-kill does not last' 'worker-kill, on: n1, for: 2s'
fault twice '.yaml:2:73: "share" is given twice' 'net-loss, on: n1, with: {share: 5%, share: 6%}'
refused too-few ': 1 node is started but nnodes needs 2' <<'END'
cluster: {nodes: 2, start: 1}
job: {run: [ls], nnodes: 2}
END
refused no-workers '.yaml:1:36: workers_per_node must be from 1' <<<'job: {run: [ls], workers_per_node: 0}'
refused not-yaml ': this is not YAML: ' <<<'job: {run: [ls'
head -c 1048576 /dev/zero | tr '\0' x >"$dir/line"
refused empty ' is empty; the smallest scenario is' </dev/null
refused huge ' is larger than 1 MiB' < <(head -c 10485760 /dev/zero | tr '\0' '#')
refused binary ': this is not text: ' < <(head -c 4096 "$rq")
refused anchors ': anchors and aliases are not used' <<'END'
a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
END
refused no-coordinator 'on: coordinator: only agents of rankrun have one that the store names' <<'END'
launcher: torchrun
job: {run: [ls]}
timeline: [{when: {step: 1}, fault: node-kill, on: coordinator}]
END

for verb in "${verbs[@]}"; do
    expect 64 'no/such.yaml: cannot be opened: No such file or directory' "$verb" no/such.yaml
    mkdir -p "$dir/empty"
    expect 64 'empty: there is no scenario in it; scenarios are files that end in .yaml' "$verb" "$dir/empty"
    expect 64 '--set job.max_restarts: max_restarts must be' "$verb" scenarios/tour.yaml \
        --set job.max_restarts=x
    expect 64 'there is no option --sed; did you mean --se' "$verb" scenarios/tour.yaml --sed 1
done
# A file that may not be read: root may read everything.
if [ "$(id -u)" != 0 ]; then
    cp scenarios/tour.yaml "$dir/unreadable.yaml"
    chmod 0 "$dir/unreadable.yaml"
    for verb in "${verbs[@]}"; do
        expect 64 ': cannot be opened: Permission denied' "$verb" "$dir/unreadable.yaml"
    done
fi

# The file is good, but there is no such job.
echo 'job: {run: [no-such-job]}' >"$dir/no-job.yaml"
for verb in "${verbs[@]:1}"; do
    expect 64 'there is no program "no-such-job"' "$verb" "$dir/no-job.yaml"
done

# The file is good, but the host may not make network namespaces (a hardened laptop, a container),
# and nothing else will do.
if unshare -Ur true 2>/dev/null; then
    echo 'job: {run: [ls]}' >"$dir/good.yaml"
    for verb in "${verbs[@]:1}"; do
        env "$mark" unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"' sh \
            "$rq" "$verb" --set cluster.isolation=namespaces "$dir/good.yaml" >"$dir/stdout" 2>"$dir/said" </dev/null
        rc=$?
        [ $rc = 4 ] || fail "$verb without network namespaces: exit $rc, not 4"
        grep -q 'nodes cannot be made on this host' "$dir/said" || fail "$verb: did not say why"
        check_nothing_started "$verb without network namespaces"
    done
fi

# What is no run, and no folder.
for verb in enter halt; do
    node=n0
    [ $verb = halt ] && node=
    expect 64 "this is no run: $dir; give the directory of a run" $verb "$dir" $node
    expect 64 "this is no run: $dir/empty.yaml; give" $verb "$dir/empty.yaml" $node
    expect 64 'there is no run no/such: No such file or directory; give the directory of a run' $verb no/such $node
done
expect 64 'there is no folder' clean "$dir/empty.yaml"
expect 64 'there is no list of "verbs"' list verbs
expect 64 'no choice is written down in it' sim "--path=$dir/empty.yaml" --exhaustive
expect 64 'line 1: "xxxxxx' sim "--path=$dir/line" --exhaustive

# What could not be printed is no success; a reader that has gone, and outputs that were closed, are nobody's mistake.
if [ -e /dev/full ]; then
    "$rq" schema scenario 2>"$dir/said" >/dev/full
    [ $? = 3 ] && grep -qF 'is the disk of standard output full?' "$dir/said" || fail 'a full standard output'
fi
"$rq" schema scenario 2>"$dir/said" >&- || fail 'a closed standard output'
"$rq" schema scenario <&- >&- 2>&- || fail 'all closed'

"$rq" >/dev/null 2>"$dir/said" && fail 'no verb: no error'
"$rq" lin >/dev/null 2>"$dir/said"
[ $? = 64 ] && grep -qF 'did you mean "lint"?' "$dir/said" || fail 'lin: not told about lint'
for verb in "${verbs[@]}"; do
    "$rq" "$verb" --help | grep -q "^usage: rankquake $verb" || fail "$verb --help: no usage"
done
exit $failed
