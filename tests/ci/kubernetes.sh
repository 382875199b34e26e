#!/usr/bin/env bash
# The manifests of ci/examples/kubernetes against rules of our own, which refuse what is misspelt, missing or does not belong together;
# and each rule is broken once. Where ci/consumers has fetched them, Kubernetes' own schemas are asked as well.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$TMPDIR/kubernetes
mkdir "$dir"
. tests/live/says.bash
python3 -c 'import yaml, jsonschema' 2>/dev/null || { echo 'python3-yaml or python3-jsonschema is not installed'; exit 77; }
check=(python3 tests/ci/kubernetes/check.py tests/ci/kubernetes/rules.json "$BIN/rankrun")

says 0 'objects in 5 manifests are as they should be' 'the examples' "${check[@]}" ci/examples/kubernetes/*.yaml
spoilt() { # spoilt FILE SED PATTERN: the file with that changed is refused
    rm -rf "$dir/k" && cp -r ci/examples/kubernetes "$dir/k"
    sed -i "$2" "$dir/k/$1"
    cmp -s "ci/examples/kubernetes/$1" "$dir/k/$1" && fail "$2 changes nothing in $1"
    says 1 "$1: .*$3" "$1 with $2" "${check[@]}" "$dir"/k/*.yaml
}
spoilt indexed-job.yaml 's/completionMode/completionmode/' "'completionmode' was unexpected"
spoilt indexed-job.yaml 's/  completions: 4/  completions: "4"/' "'4' is not of type 'integer'"
spoilt indexed-job.yaml 's/restartPolicy: OnFailure/restartPolicy: Always/' "'Always' is not one of"
spoilt indexed-job.yaml 's/parallelism: 4/parallelism: 3/' 'completions and parallelism differ'
spoilt indexed-job.yaml 's/--nnodes=4/--nnodes=5/' '--nnodes is not 4'
spoilt indexed-job.yaml 's/subdomain: workers/subdomain: others/' 'no headless service is named others'
spoilt indexed-job.yaml 's/publishNotReadyAddresses: true/publishNotReadyAddresses: false/' 'no headless service is named workers'
spoilt indexed-job.yaml 's/job-name: train/job-name: other/' 'selects the pods of no job'
spoilt indexed-job.yaml 's/--shutdown-timeout=30/--shutdown-time-out=30/' 'rankrun does not take .*shutdown-time-out'
spoilt indexed-job.yaml 's/Seconds: 60/Seconds: 20/' 'killed before the grace of its workers is over'
spoilt indexed-job.yaml 's/- name: checkpoints/- name: ckpt/' 'mounts checkpoints, which is no volume'
spoilt indexed-job.yaml '1s/never run/run/' 'does not say that it was never run'
spoilt indexed-job.yaml 's,batch/v1,batch/v2,' "'batch/v1' was expected"
spoilt indexed-job.yaml 's/kind: Job/kind: Jobs/' 'a kind that the rules do not know'
spoilt indexed-job.yaml 's/containerPort: 29400/containerPort: 294000/' '294000 is greater than the maximum'
spoilt jobset.yaml 's/v1alpha2/v1/' "'jobset.x-k8s.io/v1alpha2' was expected"
spoilt jobset.yaml 's/publishNotReadyAddresses: true, //' 'no headless service is named workers'
spoilt jobset.yaml 's/replicatedJobs/replicatedjobs/' "'replicatedJobs' is a required property"
spoilt pytorchjob.yaml 's/minReplicas: 2/minReplicas: 5/' 'not between minReplicas and maxReplicas'
spoilt pytorchjob.yaml 's/rdzvBackend: c10d/rdzvBackend: etcd-v3/' "'etcd-v3' is not one of"
spoilt elasticjob.yaml 's/maxReplicas: 3/maxReplicas: 1/' 'not between minReplicas and maxReplicas'
spoilt elasticjob.yaml 's/etcd-service:2379/etcd:2379/' 'no service serves etcd:2379'
spoilt elasticjob.yaml 's/rdzvEndpoint: .*/rdzvEndpoint: etcd-service/' 'does not match'
spoilt etcd.yaml 's/labels: {app: etcd}/labels: {app: store}/' 'selects no pod'

# Kubernetes' own kinds by the types that are made of its OpenAPI document.
ci/consumers kubernetes ci/examples/kubernetes/*.yaml >"$dir/said" 2>&1
rc=$?
case $rc in
0) grep -q '^4 objects' "$dir/said" || fail 'not all of the kinds of Kubernetes were asked about' ;;
77) echo "not asked: $(tail -n 1 "$dir/said")" ;;
*) fail "Kubernetes' own schemas: exit $rc" ;;
esac
if [ $rc = 0 ]; then
    sed 's/  completions: 4/  completions: "four"/' ci/examples/kubernetes/indexed-job.yaml >"$dir/bad.yaml"
    says 1 'spec/completions must be' 'a Job that Kubernetes refuses' ci/consumers kubernetes "$dir/bad.yaml"
fi
exit $bad
