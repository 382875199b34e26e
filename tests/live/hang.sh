#!/usr/bin/env bash
# A job that hangs is stopped at its limit, judged as failed, and leaves in hang/ what every process was
# doing; a job that goes on leaves no such thing.
set -u
. tests/live/patience.bash
dir=$TMPDIR/hang
mkdir "$dir"
bad=0
fail() {
    echo "$*"
    bad=1
}
# Whose workers wait to be killed, and end at once where nobody does: in the control run.
scenario() { # scenario SECONDS-AFTER-THE-RESTART
    cat <<END
scenario: hangs-after-restart
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: $patient_map
  run: [sh, -c, 'echo "step \$((TORCHELASTIC_RESTART_COUNT + 1))"; echo "restart \$TORCHELASTIC_RESTART_COUNT";
    case \$TORCHELASTIC_RESTART_COUNT{out} in
    0*/control) ;; 0*) exec sleep 1000 ;; *) exec sleep $1 ;; esac']
observe: {step: 'step ([0-9]+)'}
timeline:
  - {when: {step: 1, patient: true}, fault: worker-kill, on: rank 1}
limits: {stall: 2s}
END
}
wants() { # wants FILE PATTERN
    grep -qE "$2" $1 || fail "$1 does not say $2: $(cat $1)"
}

scenario 1000 >"$dir/hangs.yaml"
"$BIN/rankquake" run --isolation namespaces "$dir/hangs.yaml" --out "$dir/out" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 1 ] || { fail "exit $rc, wanted 1"; cat "$dir/said"; }
grep -q 'liveness (exit code 1)' "$dir/said" || { fail 'liveness did not decide'; cat "$dir/said"; }
grep -qE '^look at +.*/hang/$' "$dir/said" || { fail 'the report does not name hang/'; cat "$dir/said"; }
hang=$(echo "$dir"/out/*/hang)
for node in n0 n1; do
    wants "$hang/$node/rank-[01].txt" '^thread [0-9]+ sleep, S \(sleeping\), waits in [a-z_]+nanosleep'
    wants "$hang/$node/rank-[01].txt" '^  0    /dev/null$'
    wants "$hang/$node/store.txt" '^/rankrun/.*/head '
    wants "$hang/$node/wire.txt" "^from $node +[1-9]"
    wants "$hang/$node/last-lines.txt" '^restart 1$'
    wants "$hang/$node/*-rankrun.txt" 'tcp 198\.18\.0\.1[01]:[0-9]+ -> 198\.18\.0\.2:29400, established'
    if [ "$(id -u)" = 0 ]; then
        wants "$hang/$node/rank-[01].txt" '\[<0>\]'
    else
        wants "$hang/$node/rank-[01].txt" '\[<0>\]|only root may read it'
    fi
done
"$BIN/rankquake" judge "$dir"/out/* | grep -qE '^look at +.*/hang/$' || fail 'judged again, it does not name hang/'

# A node that is cut off does not see the store, and the wire has counted what it dropped.
cat >"$dir/cut.yaml" <<END
scenario: cut-off
cluster: {nodes: 2}
job:
  nnodes: "2:2"
  rdzv_conf: $watchful_map
  run: [sh, -c, 'echo "step 1"; case {out} in */control) ;; *) exec sleep 1000 ;; esac']
observe: {step: 'step ([0-9]+)'}
timeline:
  - {when: {step: 1}, fault: net-partition, on: n1}
limits: {stall: 2s}
END
"$BIN/rankquake" run --isolation namespaces "$dir/cut.yaml" --out "$dir/cut" >"$dir/said" 2>&1
rc=$?
[ $rc = 1 ] || { fail "cut off: exit $rc, wanted 1"; cat "$dir/said"; }
hang=$(echo "$dir"/cut/*/hang)
wants "$hang/n1/store.txt" '^no answer: connecting to .* port [0-9]* took longer than 2000 ms$'
wants "$hang/n0/store.txt" '^/rankrun/.*/cur '
wants "$hang/n1/wire.txt" '^from n1 .* [1-9][0-9]* dropped$'

scenario 0 >"$dir/goes-on.yaml"
"$BIN/rankquake" run --isolation namespaces "$dir/goes-on.yaml" --out "$dir/fine" >"$dir/said" 2>&1
rc=$?
[ $rc = 0 ] || { fail "the job that goes on: exit $rc, wanted 0"; cat "$dir/said"; }
[ -z "$(ls -d "$dir"/fine/*/hang 2>/dev/null)" ] || fail 'a job that goes on has left hang/'
exit $bad
