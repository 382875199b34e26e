#!/usr/bin/env bash
# Launchers of the user's own: a template that starts rankrun itself, one that starts a worker by hand, and
# those that never start one, each of which is told what is wrong with it. Nothing is left running. Jobs see the caller's cache.
# deadline: 180 s
set -u
rq=$(realpath "$BIN/rankquake") bin=$(realpath "$BIN")
dir=$TMPDIR/template
export XDG_CACHE_HOME=$TMPDIR/cache
mkdir -p "$dir" && cd "$dir" || exit 1
nap=4$$ # seconds: who sleeps so long is of this script
bad=0

run() { # run NAME WANTED-EXIT LAUNCHER [OPTION...]: what it said is left in said
    local rc
    echo "--- $1"
    timeout 300 "$rq" run s.yaml --launcher "$3" --out out "${@:4}" >said 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && { tail -n 1 said; exit 77; }
    [ $rc = "$2" ] && return
    echo "exit $rc, wanted $2"
    cat said
    bad=1
}

says() {
    grep -qF -- "$1" said && return
    echo "it does not say \"$1\":"
    cat said
    bad=1
}

cat >s.yaml <<'END'
scenario: own
cluster: {nodes: 2}
job:
  rdzv_conf: {}
  run: [ranktrain, --steps=60, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt", --collective-timeout=20]
timeline: [{id: kill, when: {step: 25}, fault: worker-kill, on: rank 1}]
expect: {world_sizes: [2, 2], restarts: 1, model: same-as-undisturbed}
END
run 'rankrun as a template' 0 "$bin/rankrun --nnodes {nodes} --rdzv-endpoint {endpoint} --rdzv-id mine \
--local-addr {address} --max-restarts 3 --no-python {worker}"
says 'a template restarts by rules of its own'

cat >s.yaml <<'END'
scenario: by-hand
cluster: {nodes: 2}
job: {run: [sh, -c, 'test -d "$XDG_CACHE_HOME/rankquake/control" && echo I am $RANK of $WORLD_SIZE; sleep 1']}
END
run 'a worker in a shell' 0 "sh -c 'export RANK={node} WORLD_SIZE={nodes}; {worker}'"
[ "$(cat out/by-hand*/logs/n?/agent.log | sort)" = $'I am 0 of 2\nI am 1 of 2' ] || {
    echo 'the workers said'
    cat out/by-hand*/logs/n?/agent.log
    bad=1
}

# It needs no rank and gets none: it has not failed, but nothing can be said of its group.
cat >s.yaml <<'END'
scenario: no-rank
cluster: {nodes: 2}
job: {run: [sh, -c, 'echo done']}
END
run 'a job that needs no rank' 3 "sh -c 'exec {worker}'"
says 'the control run ended well and cannot be judged'
says 'env RANK={node} WORLD_SIZE={nodes} {worker}'

cat >s.yaml <<'END'
scenario: by-hand
cluster: {nodes: 2}
job: {run: [sh, -c, 'test -d "$XDG_CACHE_HOME/rankquake/control" && echo I am $RANK of $WORLD_SIZE; sleep 1']}
END
run 'exits at once' 3 "sh -c 'echo out of order; exit 7' {worker}"
says 'ended 7 and had started none'
says 'out of order'
run 'no worker is started' 3 "sh -c 'echo still thinking; exec sleep $nap' {worker}" --set limits.start=1s
says 'started no worker within limits.start, 1 s'
says 'still thinking'
run 'goes into the background' 3 "sh -c 'setsid sleep $nap & exit 0' {worker}"
says 'it must stay in the foreground'
run 'wants a terminal' 3 "sh -c 'read answer </dev/tty && {worker}'"
says 'hint: a node has no terminal'
run 'gives no rank' 3 '{worker}'
says 'env RANK={node} WORLD_SIZE={nodes} {worker}'
run 'is not there' 64 '/nowhere/start {worker}'
says 'there is no program /nowhere/start'
left=$(grep -lszxF -f - /proc/[0-9]*/cmdline <<<"$nap")
if [ -n "$left" ]; then
    echo "a launcher is still running: $left"
    bad=1
fi
exit $bad
