#!/usr/bin/env bash
# A thousand faults that are triggered by a step, one a step: each must hit its own step (who sent it was held, has applied
# that update and has not begun the next), and how long after the step it fired. STEPS=1000 how many, PER_RUN=250 in a run.
# deadline: 3600 s
set -u
BIN=$(cd "$BIN" && pwd)
out=$TMPDIR/out
export XDG_CACHE_HOME=$TMPDIR/cache
bad=0 done=0
: >"$TMPDIR/all.jsonl"
while ((done < ${STEPS:=1000})); do
    per=${PER_RUN:-250}
    {
        cat <<END
scenario: steps
cluster: {nodes: 2}
job:
  nnodes: 2
  workers_per_node: 2
  run: [ranktrain, --steps=$((per + 10))]
limits: {total: 10m}
timeline:
END
        for ((i = 1; i <= per; i++)); do
            echo "  - {id: s$i, when: {step: $i}, fault: worker-signal, with: {signal: SIGWINCH}, on: rank $((i % 4))}"
        done
    } >"$TMPDIR/steps.yaml"
    rm -rf "$out"
    "$BIN/rankquake" run "$TMPDIR/steps.yaml" --out "$out" >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
    [ $rc = 0 ] || [ $rc = 2 ] || { echo "exit $rc"; tail -n 30 "$TMPDIR/said"; exit 1; }
    cat "$out"/*/history.jsonl >>"$TMPDIR/all.jsonl"
    echo '{"kind":"end-of-run"}' >>"$TMPDIR/all.jsonl"
    done=$((done + per))
done
python3 - "$TMPDIR/all.jsonl" "$done" <<'END' || bad=1
import json, sys
last, ranks, lags, hit, fired = {}, {}, [], 0, 0
for line in open(sys.argv[1]):
    r = json.loads(line)
    k = r['kind']
    if k == 'end-of-run':
        last, ranks = {}, {}
    elif k == 'worker-start':
        ranks[r['pid']] = int(r['env'].get('RANK', -1))
    elif k == 'step' and r['pid'] in ranks:
        last[ranks[r['pid']]] = r['step']
    elif k == 'fault-fired':
        fired += 1
        lags.append(r['lag_ns'])
        step = r['step']
        target = step % 4
        hit += bool(r['held'] and last.get(target) == step)
lags.sort()
n = int(sys.argv[2])
print('%d of %d faults hit their step; lag median %.3f ms, p99 %.3f ms, most %.3f ms' % (
    hit, n, lags[len(lags) // 2] / 1e6, lags[len(lags) * 99 // 100] / 1e6, lags[-1] / 1e6))
sys.exit(0 if hit == n == fired else 1)
END
exit $bad
