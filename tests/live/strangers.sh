#!/usr/bin/env bash
# What a stranger's scenario or run directory names is not executed by whoever only reads it, nothing is opened that
# waits, nobody is asked over the network, and nothing is followed out of it; run says what it starts on this host, and
# run --untrusted starts none of it.
# deadline: 120 s
set -u
rq=$(realpath "$BIN/rankquake")
good=$PWD/tests/histories/worker-killed.jsonl
dir=$TMPDIR/strangers
export MARKS=$dir/marks
mkdir -p "$dir/pr/bin" "$dir/run" "$MARKS" || exit 1
bad=0
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}

# ---- programs in every place ----

# Each leaves a mark with the name that it was started by.
cat >"$dir/pr/bin/planted" <<'END'
#!/bin/sh
: >"$MARKS/${0##*/}"
END
chmod +x "$dir/pr/bin/planted"
for name in judge python3 complete feature probe torchrun etcd train module.py launcher; do
    cp "$dir/pr/bin/planted" "$dir/pr/bin/$name"
done
# A server that leaves a mark when somebody connects; the port is the kernel's choice.
cat >"$dir/listen.py" <<'END'
import os, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
while True:
    s.accept()[0].close()
    open(os.environ["MARKS"] + "/asked", "w").close()
END
coproc listener { exec python3 "$dir/listen.py"; }
server=$listener_PID
trap 'kill $server 2>/dev/null' EXIT
read -r port <&"${listener[0]}" || exit 1

scenario() { # scenario LAUNCHER STORE: of a stranger's, with a program wherever one can stand
    cat <<END
scenario: planted
feature: [command $dir/pr/bin/feature]
launcher: $1
cluster: {nodes: 2, store: $2}
job:
  nnodes: 2
  needs: [torch]
  run: [$dir/pr/bin/module.py]
  env: {PATH: "$dir/pr/bin:/usr/bin:/bin", PYTHON_EXEC: $dir/pr/bin/python3, LD_PRELOAD: $dir/pr/bin/launcher}
  checkpoint: {dir: "{shared}/ckpt", complete: $dir/pr/bin/complete}
probe:
  here: {cmd: [$dir/pr/bin/probe], every: 1s}
  there: {cmd: [$dir/pr/bin/probe], every: 1s, on: n1}
  asked: {http: "http://127.0.0.1:$port/metrics", every: 1s}
checks:
  - {name: own, program: [$dir/pr/bin/judge]}
END
}
scenario "$dir/pr/bin/python3 -m torch.distributed.run" embedded >"$dir/pr/python.yaml"
scenario torchrun etcd >"$dir/pr/path.yaml"
scenario rankrun etcd >"$dir/pr/store.yaml"
scenario "[$dir/pr/bin/launcher, '{worker}']" none >"$dir/pr/template.yaml"

unmarked() { # unmarked WHAT
    local marks
    marks=$(ls "$MARKS")
    [ -z "$marks" ] || fail "$1 started: $marks"
    rm -f "$MARKS"/*
}
reads() { # reads CODES VERB...
    local codes=$1
    shift
    timeout 300 "$rq" "$@" >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [[ $rc =~ ^($codes)$ ]] || fail "$*: exit $rc, not $codes"
    unmarked "$*"
}
for file in "$dir"/pr/*.yaml; do
    reads 0 lint "$file"
    # What this host lacks is no matter here.
    reads '0|4' plan "$file"
    grep -q '^ *checks.own  *[^ ]*/bin/judge$' "$dir/said" || fail "plan does not name the check of $file"
    grep -q 'not asked, for plan starts nothing: feature, job.needs' "$dir/said" || fail 'plan does not say what it left out'
    reads '0|4' plan "$file" --format json
    grep -q '"commands":\[{"key":"feature","line":2,"words":"/bin/sh -c ' "$dir/said" || fail "plan.json does not name the feature"
done
reads 0 lint "$dir/pr"
reads 0 explain job.checkpoint.complete
reads 0 schema scenario

# A run that was sent: the programs of its scenario are an open question.
cat >"$dir/run/scenario.yaml" <<END
scenario: worker-killed
feature: [command $dir/pr/bin/feature]
cluster: {nodes: 1}
job:
  nnodes: 1
  workers_per_node: 2
  run: [train, "--checkpoint-dir={shared}/ckpt"]
  checkpoint: {dir: "{shared}/ckpt", complete: $dir/pr/bin/complete}
timeline:
  - {id: kill, when: {step: 5}, fault: worker-kill, on: rank 1}
probe:
  asked: {http: "http://127.0.0.1:$port/metrics", every: 1s}
expect: {restarts: 1, model: same-as-undisturbed}
checks:
  - {name: own, program: [$dir/pr/bin/judge]}
END
cp "$good" "$dir/run/history.jsonl"
for report in terminal html json junit svg; do reads 0 report "$dir/run" --to $report; done
reads 2 judge "$dir/run"
grep -q '? own:own .*was not started (--programs starts it)' "$dir/said" || fail 'judge does not say what it left out'
reads 2 judge "$dir/run" --no-programs
reads 2 judge "$dir/run/history.jsonl" --scenario "$dir/run/scenario.yaml"
reads 64 judge "$dir/run" --programs --no-programs
"$rq" judge "$dir/run" --programs >"$dir/said" 2>&1
[ -e "$MARKS/judge" ] || fail 'judge --programs does not start the check'
[ "$(ls "$MARKS")" = judge ] || fail "judge --programs started: $(ls "$MARKS")"
rm -f "$MARKS"/*

# ---- what waits, and what leads out ----

refused() { # refused TEXT VERB...
    local text=$1
    shift
    timeout 300 "$rq" "$@" >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = 64 ] || fail "$*: exit $rc, not 64"
    grep -qF -- "$text" "$dir/said" || fail "$*: did not say: $text"
}
mkdir "$dir/bad" "$dir/in"
mkfifo "$dir/bad/fifo.yaml"
echo 'job: {run: [secret]}' >"$dir/out.yaml"
ln -s ../out.yaml "$dir/bad/link.yaml"
echo 'include: fifo.yaml' >"$dir/bad/include.yaml"
echo 'suite: [fifo.yaml]' >"$dir/bad/suite.yaml"
echo 'include: ../out.yaml' >"$dir/bad/outside.yaml"
ln -s /etc/passwd "$dir/in/passwd"
echo 'include: passwd' >"$dir/in/host.yaml"
printf 'job: {run: [train]}\nreplay: {trace: %s, speed: 1, causes: {gpu: worker-kill}}\n' fifo.yaml >"$dir/bad/trace.yaml"
for verb in lint plan; do
    for file in fifo include suite trace; do
        refused 'is a FIFO, and only plain files are read' $verb "$dir/bad/$file.yaml"
    done
    refused 'is a device, and only plain files are read' $verb /dev/zero
    refused "link.yaml: lies outside $dir/bad" $verb "$dir/bad/link.yaml"
    refused "include: ../out.yaml lies outside $dir/bad" $verb "$dir/bad/outside.yaml"
    refused "include: passwd lies outside $dir/in" $verb "$dir/in/host.yaml"
    grep -q root "$dir/said" && fail "$verb shows a file of the host"
done
refused 'is a FIFO' judge "$dir/bad/fifo.yaml" --scenario "$dir/run/scenario.yaml"
refused 'is a FIFO' schema --fill "$dir/bad/fifo.yaml"
# The job's script is looked for, never opened.
mkfifo "$dir/bad/train.py"
echo "job: {run: [$dir/bad/train.py]}" >"$dir/pr/script.yaml"
reads '0|4' plan "$dir/pr/script.yaml"
# Whoever hands over a pipe has opened it.
cat "$good" | "$rq" judge /dev/stdin --scenario "$dir/run/scenario.yaml" >"$dir/said" 2>&1
[ $? = 2 ] || fail 'a history from a pipe'

# ---- what takes memory ----

if [ "$BUILD" = release ]; then
    little() { # little NAME: refused with so much memory as a scenario may take
        (ulimit -v 150000 && exec timeout 300 "$rq" lint "$dir/$1.yaml") >"$dir/said" 2>&1
        rc=$?
        [ $rc = 64 ] || fail "$1: exit $rc, not 64"
    }
    yes '{a}' | head -c 1040000 >"$dir/lines.yaml"
    yes '{a}' | tr -d '\n' | head -c 1040000 >"$dir/line.yaml"
    yes '[' | tr -d '\n' | head -c 1040000 >"$dir/brackets.yaml"
    { echo 'vars: {a: "'"$(yes x | tr -d '\n' | head -c 30000)"'"}'; echo 'about: |'; printf '  '; yes '{a}' | tr -d '\n' | head -c 90000; } >"$dir/vars.yaml"
    for name in lines line brackets vars; do little $name; done
fi

# ---- run ----

cat >"$dir/pr/named.yaml" <<END
scenario: named
feature: [command $dir/pr/bin/feature && exit 3]
cluster: {nodes: 2}
job: {nnodes: 2, run: [ranktrain, --steps=20]}
checks: [{name: own, program: [$dir/pr/bin/judge]}]
END
"$rq" run "$dir/pr/named.yaml" --out "$dir/runs" >"$dir/said" 2>&1
[ $? = 4 ] || fail 'a host that lacks the feature'
rm -f "$MARKS"/*
grep -q "^on this host, before the run, and must end with 0: /bin/sh -c '.*bin/feature && exit 3' (feature)$" "$dir/said" &&
    grep -q '^on this host, when the run is judged: .*bin/judge (checks.own)$' "$dir/said" || fail 'run does not say what it will start'
untrusted() { # untrusted TEXT ARGUMENT...
    refused "$1" run --untrusted --out "$dir/runs" "${@:2}"
    unmarked "run --untrusted ${*:2}"
    [ ! -e "$dir/runs" ] || fail "run --untrusted ${*:2} made a run directory"
}
rm -rf "$dir/runs"
mkdir "$dir/root"
untrusted 'needs --rootfs DIR' "$dir/pr/python.yaml"
untrusted 'needs namespaces' "$dir/pr/python.yaml" --rootfs "$dir/root" --isolation processes
untrusted 'leave --jobs out' "$dir/pr/python.yaml" --rootfs "$dir/root" --jobs 2
for file in python path store template; do
    for place in ':2:10: feature' '.*: job.checkpoint.complete' '.*: probe.here' '.*: probe.there' '.*: checks.own'; do
        untrusted '--untrusted starts nothing outside of the nodes; it would have executed, ' "$dir/pr/$file.yaml" --rootfs "$dir/root"
        grep -q "$file.yaml$place: --untrusted starts nothing" "$dir/said" || fail "$file.yaml: $place is not refused"
    done
    grep -q 'probe.asked: --untrusted asks nobody' "$dir/said" || fail "$file.yaml: a probe of this host's network is not refused"
done
echo 'scenario: rights
cluster: {privileged: true}
job: {run: ["true"]}' >"$dir/pr/rights.yaml"
untrusted 'cluster.privileged: --untrusted gives a job no rights of yours' "$dir/pr/rights.yaml" --rootfs "$dir/root"
untrusted 'lies outside' "$dir/bad/outside.yaml" --rootfs "$dir/root"

# What is left of it runs in nodes that see nothing of the host, nor what is secret here.
programs=$(type -P bash cat)
for file in $programs; do
    mkdir -p "$dir/root/bin" && cp -L "$file" "$dir/root/bin/" || exit 1
    for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$dir/root${library%/*}" && cp -Ln "$library" "$dir/root$library"
    done
done
mkdir -p "$dir/root/etc" "$dir/desk"
cat >"$dir/desk/look.sh" <<'END'
#!/bin/bash
[ -z "${SECRET_TOKEN-}" ] || { echo 'wrong: the token is seen'; exit 1; }
[ ! -e /usr/share ] || { echo 'wrong: the host is seen'; exit 1; }
echo stays >left || exit 1
END
chmod +x "$dir/desk/look.sh"
cat >"$dir/desk/s.yaml" <<END
scenario: closed
cluster: {nodes: 2, isolation: processes}
job: {nnodes: 2, writes: kept, needs: [torch], run: [./look.sh], env: {LD_PRELOAD: /nowhere.so, PYTHON_EXEC: $dir/pr/bin/python3}}
END
(cd "$dir/desk" && SECRET_TOKEN=1 timeout 300 "$rq" run --untrusted s.yaml --rootfs "$dir/root" --out "$dir/runs" --fresh) >"$dir/said" 2>&1
rc=$?
if [ $rc = 4 ] && ! unshare -Urnpf true 2>/dev/null; then
    grep -q 'nodes cannot be made on this host' "$dir/said" || fail 'a host without namespaces is not named'
else
    # A job that shows no steps passes, or leaves questions open.
    [[ $rc =~ ^[02]$ ]] || fail "run --untrusted: exit $rc"
    grep -rqs wrong "$dir/runs"/*/logs && fail "a node sees the host: $(grep -rhs wrong "$dir/runs"/*/logs)"
    grep -q '^again .* run s.yaml --seed 1 --untrusted --set ' "$dir/said" || fail 'what is typed to run it again is not as safe'
    [ ! -e "$dir/desk/left" ] || fail 'what the job wrote stays'
    unmarked 'run --untrusted'
fi
exit $bad
