#!/usr/bin/env bash
# What a job has written is damaged on its disks: each way is felt when a worker is started while it lies so, on nodes of both
# kinds; where none is started after it, the verdict is open. What is not of the job, or has a second name, is left alone.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

# The first round writes, waits until all has been damaged, and fails where it is told to; the second ends.
cat >"$dir/job.sh" <<'END'
case $1 in */control) exit 0 ;; esac
[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0
mkdir -p $2/ckpt/step-{1,2} $3/own
for file in cut flipped gone one two; do printf '%0999d' 0 >$2/ckpt/step-2/$file; done
echo two >>$2/ckpt/step-2/two
echo of another >$2/other
echo 2 >$2/latest
ln -s step-2 $2/ckpt/newest
printf '%0999d' 0 >$3/own/data
echo kept >$3/own/first && ln $3/own/first $3/own/second
echo written
grep -qm 1 'fault-[a-z-]*","id":"last"' < <(tail -n +1 -f $1/history.jsonl)
exit $4
END
entries() { # entries: one for each way
    echo '  - {id: cut, when: {log: /written/}, fault: file-truncate, with: {path: "{shared}/ckpt/step-*/cut", bytes: 7}, on: n0}'
    while read -r id fault with; do
        echo "  - {id: $id, when: {after: cut}, fault: file-$fault, with: {path: $with}, on: n0}"
    done <<'END'
flipped flip "{shared}/ckpt/*/flipped", offset: 500, bit: 3
own flip "{disk}/own/da*", which: seeded
gone delete "{shared}/ckpt/step-2/gone"
swapped swap "{shared}/ckpt/step-2/one", other: two
stale stale "{shared}/ckpt/newest"
dangling stale "{shared}/latest", to: missing
foreign foreign "{shared}/ckpt/step-2/[t]wo", from: "{shared}/other"
END
    echo '  - {id: last, when: {after: foreign}, fault: file-delete, with: {path: "{shared}/other"}, on: n0}'
}
job() { # job CODE: of the first round
    printf 'cluster: {nodes: 1}\njob:\n  max_restarts: 1\n  rdzv_conf: %s\n  run: [bash, %s, "{out}", "{shared}", "{disk}", "%s"]\n' \
        "$patient_map" "$dir/job.sh" "$1"
    printf 'timeline:\n'
    entries
    printf 'limits: {total: 240s}\n'
}
job 1 >"$dir/read.yaml"
for isolation in namespaces processes; do
    runs "read anew, $isolation" 0 "$dir/read.yaml" --isolation $isolation
    for id in cut flipped own gone swapped stale dangling foreign last; do
        recorded "read anew, $isolation" '"source":"disk","kind":"fault-evidence","id":"'$id'"'
    done
    recorded "read anew, $isolation" '"id":"cut".*"path":"\{shared\}/ckpt/step-2/cut","was":"a file of 999 bytes, .*"is":"a file of 7 bytes'
    recorded "read anew, $isolation" '"id":"gone".*"is":"nothing"'
    recorded "read anew, $isolation" '"id":"foreign".*"is":"a file of 11 bytes'
done

# Nobody is started after it: nobody has read it.
job 0 >"$dir/unread.yaml"
runs 'read by nobody' 2 "$dir/unread.yaml"
for id in cut flipped own gone swapped stale dangling foreign last; do
    recorded 'read by nobody' '"kind":"fault-unfelt","id":"'$id'".*no worker was started after it'
done

# Refused when its moment comes, and nothing is changed: a file that lies elsewhere too, one that is not there.
{
    sed '/^timeline/q' "$dir/read.yaml"
    echo '  - {id: linked, when: {log: /written/}, fault: file-truncate, with: {path: "{disk}/own/first"}, on: n0}'
    echo '  - {id: absent, when: {after: linked}, fault: file-flip, with: {path: "{shared}/no/*"}, on: n0}'
    echo '  - {id: last, when: {after: linked}, fault: file-flip, with: {path: "{shared}/ckpt/newest"}, on: n0}'
    echo 'limits: {total: 240s}'
} | sed 's/after: linked/log: \/written\//' >"$dir/refused.yaml"
runs 'left alone' 2 "$dir/refused.yaml"
recorded 'left alone' '"fault-failed","id":"linked".*own/first has a second name, which may lie elsewhere: it is left alone'
recorded 'left alone' '"fault-failed","id":"absent".*nothing in .*/shared matches no/\*'
recorded 'left alone' '"fault-failed","id":"last".*newest is a symbolic link'

# Bad input.
for bad in 'path: /etc/passwd|path: "/etc/passwd" is not on a disk of the job' 'path: "{shared}/../x"|a part of it is empty, . or ..' \
    'which: middle|which: middle is none of newest, oldest and seeded' 'bit: 8|bit: "8" is not a number from 0 to 7'; do
    sed "s,fault: file-truncate.*,fault: file-flip\, with: {${bad%%|*}}\, on: n0}," "$dir/refused.yaml" >"$dir/bad.yaml"
    runs "bad ${bad%%|*}" 64 "$dir/bad.yaml"
    said "bad ${bad%%|*}" "${bad#*|}"
done
exit $failed
