#!/usr/bin/env bash
# Jobs that are hard to end: whose child must hear the signal, slow to obey, hung and continued, in mixed collectives, with
# daemons. rankrun ends them as it should, and a launcher (tests/liars), or a job, that does not is caught by the check named.
# deadline: 180 s
set -u
. tests/live/runs.bash

well() { # well NAME: the scenario passes
    runs "$1" 0 "scenarios/restart/$1.yaml"
}
# On one node of two workers, by a launcher that knows the workers' pids and nothing else.
badly() { # badly NAME CODE WORDS [SED]
    sed -E 's/^cluster:.*/cluster: {nodes: 1}/; /workers_per_node|nnodes|rdzv_conf|world_sizes|restarts:|_within/d' "scenarios/restart/$1.yaml" |
        sed -E "s/^job:/job:\n  workers_per_node: 2/; s/rank 1}/rank 0}/; ${4-}" >"$dir/bad.yaml"
    runs "$1, badly launched" "$2" "$dir/bad.yaml" --launcher "bash $PWD/tests/liars/launcher.sh none {worker}"
    said "$1, badly launched" "$3"
}

well shell-child
badly shell-child 1 '(x|✗) log '
[ "${ODD-}" = all ] || exit $failed # tests/soak/odd_jobs.sh has time for the others

well slow-to-obey
well hangs-and-goes-on
badly hangs-and-goes-on 1 '(x|✗) liveness ' 's/total: 2m/total: 12s/; s/--collective-timeout=3/--collective-timeout=1/'
well mixed-collectives
sed 's/-lt 150 \]/-lt 150000 ]/; s/total: 2m/total: 2m, stall: 3s/' scenarios/restart/mixed-collectives.yaml >"$dir/bad.yaml"
runs 'a job that waits for ever' 1 "$dir/bad.yaml"
said 'a job that waits for ever' '(x|✗) liveness '
well leaves-a-daemon
badly leaves-a-daemon 3 'failed in the control run, .*: 4 processes \(.* sleep\)' '/id: fail/d'
exit $failed
