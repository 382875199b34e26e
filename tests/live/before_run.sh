#!/usr/bin/env bash
# Before a run begins: a signal ends the harness with a sentence, a HOME that does not exist is not made for the cache, a node
# that is late in the control run fails nothing, and a store that does not get its port is named with its last words.
# deadline: 120 s
set -u
rq=$(cd "$BIN" && pwd)/rankquake
dir=$TMPDIR/before
mkdir "$dir" && cd "$dir" || exit 1
bad=0
fail() {
    echo "$*"
    cat said
    bad=1
}

# ---- a signal while the host is asked what it has: here for a launcher whose Python takes its time ----
cat >python3 <<'END'
#!/bin/sh
echo up >"$UP"
exec sleep 1000
END
chmod +x python3
echo pass >train.py
cat >slow.yaml <<END
launcher: [$dir/python3, -m, torch.distributed.run]
job: {run: [train.py]}
END
mkfifo up
exec 3<>up
for signal in INT TERM HUP; do
    # What a shell starts in the background has SIGINT ignored.
    UP=$dir/up env --default-signal=INT "$rq" run slow.yaml --out out >said 2>&1 </dev/null &
    harness=$!
    read -r -t 180 -u 3 _ || fail "SIG$signal: the launcher was never asked"
    kill -"$signal" $harness
    wait $harness
    rc=$?
    [ $rc = 130 ] || fail "SIG$signal: exit $rc, not 130"
    grep -qx 'rankquake run: interrupted; no run was under way' said || fail "SIG$signal: no sentence"
done
[ -e out ] && fail 'a run directory was made'

# ---- a HOME that does not exist ----
cat >quick.yaml <<'END'
job: {run: [sh, -c, 'sleep 1']}
END
for again in 1 2; do
    env -u XDG_CACHE_HOME HOME="$dir/nobody" timeout 300 "$rq" run quick.yaml quick.yaml --out home >said 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && { tail -n 1 said; exit 77; }
    [ $rc = 0 ] || fail "HOME does not exist, run $again: exit $rc"
    [ "$(grep -c "HOME is $dir/nobody, which does not exist" said)" = 1 ] || fail 'HOME does not exist: not said once'
    [ "$(wc -l < <(grep -i 'cache' said))" = 1 ] || fail 'HOME does not exist: it takes more than one line'
    [ -e nobody ] && fail 'HOME was made'
done
env -u XDG_CACHE_HOME HOME="$dir/nobody" "$rq" clean home >said 2>&1 || fail 'clean without a HOME'

# ---- a node that comes to the control run when its first round has begun: its workers are asked to end, and start again ----
mkfifo begun
cp -R "$(dirname "$rq")" late
cat >late/rankrun <<END
#!/bin/sh
[ "\$(hostname)" != n1 ] || read -r _ <$dir/begun
exec "$(dirname "$rq")/rankrun" "\$@"
END
cat >late.yaml <<END
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: {last_call_timeout: 100ms}
  run: [sh, -c, 'echo >$dir/begun; [ \$WORLD_SIZE = 2 ] || exec sleep 1000']
END
timeout 300 late/rankquake run late.yaml --out late_out >said 2>&1 <>begun
rc=$?
[ $rc = 0 ] || fail "a node that is late: exit $rc"
[ "$(grep -c '"kind":"worker-start"' late_out/*/control/history.jsonl)" = 3 ] || fail 'a node that is late: there was one round'

# ---- a store that finds its port taken, as by a server that has come since the plan was made ----
cp -R "$(dirname "$rq")" programs
cat >programs/rankrun <<END
#!/bin/sh
[ "\$1" = store ] || exec "$(dirname "$rq")/rankrun" "\$@"
echo 'port 29400 is taken' >&2
exit 1
END
timeout 300 programs/rankquake run quick.yaml --fresh --isolation processes --out taken >said 2>&1 </dev/null
rc=$?
[ $rc = 3 ] && grep -q 'the store on store ended before the job was started: port 29400 is taken' said ||
    fail "a store that finds its port taken: exit $rc"

left=$(grep -lszxF "UP=$dir/up" /proc/[0-9]*/environ)
[ -z "$left" ] || fail "what the host was asked by is left: $left"
exit $bad
