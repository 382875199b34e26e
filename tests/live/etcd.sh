#!/usr/bin/env bash
# A real etcd as the store, in a node of its own and as three members: rankrun recovers over it, and what
# etcd cannot do is said.
# deadline: 300 s
set -u
rq=$(realpath "$BIN/rankquake")
dir=$TMPDIR/etcd
export XDG_CACHE_HOME=$TMPDIR/cache
mkdir -p "$dir" && cd "$dir" || exit 1
bad=0
if ! command -v etcd >/dev/null; then
    echo 'no etcd on this host: apt install etcd-server'
    exit 77
fi

cat >s.yaml <<'END'
scenario: over-etcd
cluster: {nodes: 2, store: etcd}
job:
  run: [ranktrain, --steps=60, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt", --collective-timeout=20]
timeline: [{id: kill, when: {step: 25}, fault: worker-kill, on: rank 1}]
expect: {world_sizes: [2, 2], restarts: 1, model: same-as-undisturbed}
END
# Of three members the first, which agents ask first, is out of reach when a worker dies.
cat >three.yaml <<'END'
scenario: three
cluster: {nodes: 2, store: etcd-3}
job:
  run: [ranktrain, --steps=60, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt", --collective-timeout=20,
        --compute-ms=40]
timeline:
  - {id: cut, when: {step: 25}, fault: net-partition, with: {groups: "n0,n1,store-1,store-2|store-0"}}
  - {id: kill, when: {after: cut, step: 28}, fault: worker-kill, on: rank 1}
expect: {world_sizes: [2, 2], restarts: 1, model: same-as-undisturbed}
END
for file in s three; do
    timeout 300 "$rq" run $file.yaml --out out >said 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && { tail -n 1 said; exit 77; }
    if [ $rc != 0 ]; then
        echo "$file.yaml: exit $rc"
        cat said
        bad=1
    fi
done
members=$(ls -d out/three-*/logs/store-* | wc -l)
[ "$members" = 3 ] || { echo "$members members have a log, not 3"; bad=1; }

# An etcd that ends before the job is started is named, with its last words.
printf '#!/bin/sh\necho no disk; exit 1\n' >etcd-broken
chmod +x etcd-broken && mkdir path && mv etcd-broken path/etcd
PATH=$dir/path:$PATH timeout 300 "$rq" run s.yaml --fresh --out broken >said 2>&1 </dev/null
rc=$?
if [ $rc != 3 ] || ! grep -qF 'ended before the job was started: no disk' said; then
    echo "with a broken etcd: exit $rc, wanted 3"
    cat said
    bad=1
fi
exit $bad
