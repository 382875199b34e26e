#!/usr/bin/env bash
# Ranks that a job starts itself, below the one process that the launcher starts: given their variables by a shell that starts
# programs, or set after a fork, which they say themselves. A fault aims at one of them; what its parent does is judged, ranks
# that are given twice are found, and shared memory that who was killed could not take away is not charged to the job.
# deadline: 90 s
set -u
. tests/live/runs.bash

cat >"$dir/forks.yaml" <<'END'
scenario: forks
about: ranks by fork, which set their variables themselves
cluster: {nodes: 1}
job:
  spawns: 2
  max_restarts: 1
  rdzv_conf: {profile: fast}
  run:
    - python3
    - -c
    - |
      import os, socket, sys, time
      sys.path.insert(0, sys.argv[1])
      import rankquake
      first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and not sys.argv[2].endswith("/control")
      meet = (os.pipe(), os.pipe())
      def together(number):
          os.write(meet[1 - number][1], b"x")
          os.read(meet[number][0], 1)
      def rank(number):
          os.environ.update(RANK=str(RANKS[number]), LOCAL_RANK=str(RANKS[number]), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
          with rankquake.Client() as client:
              client.ready()
              together(number)
              for step in range(1, 6):
                  client.step(step)
              while first:
                  time.sleep(1000)
              client.done("model")
              # When the harness has closed its end it has read everything; then both may end.
              client._socket.shutdown(socket.SHUT_WR)
              client._socket.recv(1)
          together(number)
          os._exit(0)
      RANKS = (0, 1)
      ranks = [os.fork() or rank(number) for number in range(2)]
      for _ in ranks:
          pid, status = os.wait()
          if status:
              os.kill(ranks[1 - ranks.index(pid)], 15)
              sys.exit(1)
    - "{program}"
    - "{out}"
timeline:
  - {when: {step: 5}, fault: worker-kill, on: rank 1}
expect: {outcome: succeeded, world_sizes: [2, 2], restarts: 1}
limits: {total: 1m}
END
sed -i "s|{program}|$PWD/scenarios/jobs|" "$dir/forks.yaml"
runs 'ranks by fork' 0 "$dir/forks.yaml"
recorded 'ranks by fork' '"worker-start".*"RANK":"1".*"by":"job"'
# Both are given the same when they begin anew.
sed "s/RANKS = (0, 1)/RANKS = (0, 1) if first or sys.argv[2].endswith('control') else (0, 0)/" "$dir/forks.yaml" >"$dir/twice.yaml"
runs 'a rank that is given twice' 1 "$dir/twice.yaml"
said 'a rank that is given twice' 'RANK 0 was given twice'

cat >"$dir/shared.yaml" <<'END'
scenario: shared
about: what a process has of /dev/shm when a fault kills it nobody can take away; what one that ends in order leaves counts
cluster: {nodes: 1}
job:
  max_restarts: 1
  rdzv_conf: {profile: fast}
  run:
    - python3
    - -c
    - |
      import _posixshmem, os, sys, time
      again = os.environ["TORCHELASTIC_RESTART_COUNT"] == "1"
      if not again and not sys.argv[1].endswith("/control"):
          held = _posixshmem.shm_open("/psm_killed", os.O_CREAT | os.O_RDWR, mode=0o600)
          print("ready", flush=True)
          time.sleep(1000)
      if again and LEAVES:
          _posixshmem.shm_open("/psm_ended", os.O_CREAT | os.O_RDWR, mode=0o600)
    - "{out}"
timeline:
  - {when: {log: '/^ready/'}, fault: worker-kill, on: rank 0}
expect: {outcome: succeeded, restarts: 1}
limits: {total: 1m}
END
sed 's/LEAVES/False/' "$dir/shared.yaml" >"$dir/killed.yaml"
runs 'shared memory of who was killed' 0 "$dir/killed.yaml"
recorded 'shared memory of who was killed' '"leftovers".*"/dev/shm/psm_killed"'
said 'shared memory of who was killed' 'leftovers nothing but Python.s /dev/shm/psm_killed on n0, which process [0-9]+ had when worker-kill-1 ended it'
[ "${SPAWNED-}" = all ] || exit $failed # tests/soak/spawned.sh has time for the others

sed 's/LEAVES/True/' "$dir/shared.yaml" >"$dir/ended.yaml"
runs 'shared memory of who ended in order' 1 "$dir/ended.yaml"
said 'shared memory of who ended in order' 'leftovers .*shared memory /dev/shm/psm_ended'

runs 'ranks by a shell' 0 scenarios/restart/spawned-ranks.yaml
recorded 'ranks by a shell' '"worker-start".*"RANK":"1".*"by":"kernel"'
said 'ranks by a shell' 'worker-kill on n0/1 .rank 1.'
exit $failed
