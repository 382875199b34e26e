#!/usr/bin/env bash
# What a scenario asks from outside while the job runs: commands in a node and on the host, a server and its metrics,
# answered in time and not, and what must hold before the faults and after them.
# deadline: 120 s
set -u
. tests/live/patience.bash
export XDG_CACHE_HOME=$TMPDIR/cache
cat >"$TMPDIR/p.yaml" <<EOF
cluster: {nodes: 2}
job:
  nnodes: "2:2"
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=160, --compute-ms=30, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
probe:
  name: {cmd: [hostname], on: n1, every: 50ms, tolerance: /^n1$/}
  many: {cmd: [sh, -c, "ls {shared}/ckpt | wc -l"], every: 50ms, tolerance: ">= 0"}
  slow: {cmd: [sleep, "600"], within: 100ms}
  gone: {cmd: [sh, -c, "exit {seed}"]}
  round: {prometheus: 'http://store:29400/metrics', metric: rankrun_job_round, every: 500ms, tolerance: 1..2}
  page: {http: 'http://store:29400/metrics', on: n1, tolerance: '/rankrun_store_keys [0-9]+/'}
  nobody: {http: 'http://n0:7/'}
  missing: {http: 'http://store:29400/no/such/page'}
  nowhere: {http: 'http://no.such.host.invalid/', on: n0}
  unmetered: {prometheus: 'http://store:29400/metrics', metric: 'rankrun_job_round{run_id="another"}'}
  told: {cmd: [rankrun, status, --rdzv-endpoint=store, --rdzv-id=p, --format=json], on: n0, every: 500ms}
  labels: {prometheus: 'http://store:29400/metrics', metric: rankrun_job_phase}
timeline:
  - {id: kill, when: {step: 40}, fault: worker-kill, on: rank 1}
expect: {restarts: 1, probe: {name: always, many: 100ms}}
EOF
run() { # CODE PATTERN ARGUMENT...
    local code=$1 pattern=$2
    shift 2
    rm -rf "$TMPDIR/runs"
    timeout 300 "$BIN/rankquake" run "$TMPDIR/p.yaml" --out "$TMPDIR/runs" "$@" >"$TMPDIR/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
    [ $rc = "$code" ] && grep -Eq -e "$pattern" "$TMPDIR/said" && return
    echo "exit code $rc, expected $code and \"$pattern\""
    cat "$TMPDIR/said"
    exit 1
}
run 0 'probe +[0-9]+ answers before, [0-9]+ while faults lasted, [0-9]+ after'
said=$(cat "$TMPDIR"/runs/*/history.jsonl)
for line in '"node":"n1","probe":"name","ok":true,"value":"n1"' '"probe":"slow","ok":false,.*no answer within 100 ms' \
    '"probe":"gone","ok":false,.*ended with exit code 1' '"node":"store","probe":"round","ok":true,"value":"[12]",' \
    '"node":"n1","probe":"page","ok":true' '"node":"n0","probe":"nobody","ok":false,"value":"",.*no answer: .*[Rr]efused' \
    '"node":"store","probe":"missing","ok":false,"value":"","error":"it answered with HTTP status 40[0-9]"' \
    '"node":"n0","probe":"nowhere","ok":false,.*no answer: .*resolve' \
    '"node":"store","probe":"unmetered","ok":false,.*1 series of that name, and none is' \
    '"node":"n0","probe":"told","ok":true,"value":".*","status":".*members.*next_beat_ms.*}]}"' \
    '"node":"store","probe":"labels","ok":false,.*6 series of the page are rankrun_job_phase; name more'; do
    grep -Eq -e "\"source\":\"user\",\"kind\":\"answer\",$line" <<<"$said" || { echo "no answer $line"; exit 1; }
done
# The same history, with more expected of it.
sed 's/probe: {name: always/probe: {gone: steady, name: always/' "$TMPDIR/p.yaml" >"$TMPDIR/more.yaml"
"$BIN/rankquake" judge --scenario "$TMPDIR/more.yaml" "$TMPDIR"/runs/*/history.jsonl >"$TMPDIR/said" 2>&1
grep -Eq 'probe +gone, before the first fault: it ended with exit code 1' "$TMPDIR/said" || { cat "$TMPDIR/said"; exit 1; }
run 64 'there is no probe "nmae"' --set expect.probe.nmae=steady
