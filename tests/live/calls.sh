#!/usr/bin/env bash
# A job that tells nobody anything, struck at its n-th system call of a kind (when.syscall): it has made all those before and
# not that one, in both isolations, also by one that a cut listens to itself; and what lint says of wrong names.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

write() { # write FILE WHEN FAULT
    cat >"$dir/$1.yaml" <<END2
cluster: {nodes: 1}
job:
  rdzv_conf: {profile: fast}
  run:
    - sh
    - -c
    - |
      cd {shared}
      round=\$TORCHELASTIC_RESTART_COUNT
      for i in 1 2 3 4; do
          echo begin >>begun.\$round
          sync begun.\$round
          echo end >>ended.\$round
      done
      case {out} in */control) exit 0 ;; esac
      [ "\$(cat begun.0 | wc -l) \$(cat ended.0 | wc -l)" = "3 2" ]
timeline:
  - {id: kill, when: {$2}, $3}
END2
}
write third 'syscall: fsync, nth: 3' 'fault: worker-kill, on: rank 0'
for isolation in namespaces processes; do
    runs "the third fsync, $isolation" 0 "$dir/third.yaml" --set cluster.isolation=$isolation
    recorded "the third fsync, $isolation" '"kind":"system-call".*"id":"kill","call":"fsync"'
    recorded "the third fsync, $isolation" '"kind":"fault-fired".*"lag_ns":[0-9]+,"held":true'
done
write fifth 'syscall: fsync, nth: 9' 'fault: worker-kill, on: rank 0'
runs 'a call that does not come' 2 "$dir/fifth.yaml" --set job.run.2='sync {shared}; sync {shared}; sleep 0.2'
said 'a call that does not come' 'only 2 of 9 times was fsync about to be called'
wrong() { # wrong WHAT TEXT WHEN
    write wrong "$3" 'fault: worker-kill, on: rank 0'
    "$BIN/rankquake" lint "$dir/wrong.yaml" >"$dir/said" 2>&1 && fail "$1: lint found nothing"
    said "$1" "$2"
}
wrong 'a call of nobody' 'wrong.yaml:18:32: syscall must be .*, not "fsnyc"; did you mean "fsync"' 'syscall: fsnyc'
wrong 'what threads wait with' 'wrong.yaml:18:32: syscall: futex is how threads wait for each other' 'syscall: futex'
wrong 'two that are held' 'a system call and something else; only one of them can be held' 'syscall: fsync, step: 3'
"$BIN/rankquake" plan "$dir/third.yaml" >"$dir/said" 2>&1 || fail 'plan'
said plan 'before the call of fsync number 3 by the target'
exit $failed
