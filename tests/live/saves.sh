#!/usr/bin/env bash
# A job that saves and tells nobody, struck just there (when.file): the file is torn whenever it is hit, a
# rename has not come when it is hit, in both isolations; and what lint says of a wrong trigger.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

write() { # write FILE OP NTH GLOB TIMES
    cat >"$dir/$1.yaml" <<END2
cluster: {nodes: 1}
job:
  rdzv_conf: {profile: fast}
  max_restarts: 30
  run:
    - sh
    - -c
    - |
      cd {shared}
      [ -e snapshot.pt ] && echo early >>early
      { echo begin; echo end; } >snapshot.tmp
      [ ! -e early ] || exit 1
      exec mv snapshot.tmp snapshot.pt
timeline:
  - {id: kill, when: {file: '$4', op: $2, nth: $3}, fault: worker-kill, on: rank 0, times: $5}
END2
}
hits() { # hits WHAT BYTES TIMES
    local n
    n=$(cat "$dir"/out/*/history.jsonl | grep -c "\"kind\":\"file-call\".*\"bytes\":$2,")
    [ "$n" = "$3" ] || fail "$1: $n of $3 hits with $2 bytes"
    n=$(cat "$dir"/out/*/history.jsonl | grep -c '"kind":"fault-fired".*"held":true')
    [ "$n" = "$3" ] || fail "$1: $n of $3 held"
    rm -rf "${dir:?}/out"
}
write torn write 2 'snapshot*' 20
write named rename 1 '*.pt' 5
for isolation in namespaces processes; do
    runs "a torn file, $isolation" 0 "$dir/torn.yaml" --set cluster.isolation=$isolation
    hits "a torn file, $isolation" 6 20
    runs "before a rename, $isolation" 0 "$dir/named.yaml" --set cluster.isolation=$isolation
    hits "before a rename, $isolation" 10 5
done
wrong() { # wrong WHAT TEXT OP NTH GLOB
    write wrong "${@:3}" 1
    "$BIN/rankquake" lint "$dir/wrong.yaml" >"$dir/said" 2>&1 && fail "$1: lint found nothing"
    said "$1" "$2"
}
wrong 'an operation of nobody' 'wrong.yaml:15:[0-9]+: op .*open' opn 1 x
wrong 'a class without an end' 'wrong.yaml:15:29: file: "x\[1" has a \[ without' write 1 'x[1'
wrong 'a placeholder' 'wrong.yaml:15:29: file: .* leave the placeholder' write 1 '{shared}/x'
exit $failed
