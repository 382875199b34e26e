#!/usr/bin/env bash
# Nodes that a cloud takes away: what their metadata service says before and after, to programs that ask it as in that cloud.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'python3 is missing, which asks'; exit 77; }
. tests/live/patience.bash
. tests/live/runs.bash

# The worker of n1 is in gcp, that of n2 in azure, that of n3 in aws; n0 stays. One after the other is taken away, a round each.
# All ask when they start, and again when they are told to leave; in gcp it waits for the answer to change.
cat >"$dir/asks.py" <<EOF
import json, os, signal, socket, sys, time, urllib.error, urllib.request
sys.path.insert(0, '$PWD/scenarios/jobs')
import rankquake
out, me = sys.argv[1], socket.gethostname()
google = 'metadata.google.internal'
aws = 'http://169.254.169.254/latest/'
def ask(url, method='GET', **headers):
    try:
        r = urllib.request.Request(url, method=method, headers={k.replace('_', '-'): v for k, v in headers.items()})
        return urllib.request.urlopen(r, timeout=60).read().decode()
    except urllib.error.HTTPError as e:
        return e.code
def gcp(wait=''):
    return ask('http://' + google + '/computeMetadata/v1/instance/preempted' + wait, Metadata_Flavor='Google')
def spot(what):
    token = ask(aws + 'api/token', 'PUT', X_aws_ec2_metadata_token_ttl_seconds='60')
    return ask(aws + 'meta-data/spot/' + what, X_aws_ec2_metadata_token=token)
def azure():
    return json.loads(ask('http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01', Metadata='true'))
def say(*what):
    with open(f'{out}/said.{me}', 'a') as f:
        print(*what, file=f)
def leave():
    if me == 'n2' and azure()['Events']:
        e = azure()['Events'][0]
        say(e['EventType'], e['Resources'][0], e['NotBefore'])
    if me == 'n3' and spot('instance-action') != 404:
        say(json.loads(spot('instance-action'))['action'], spot('termination-time'))
    sys.exit(0)
if out.rstrip('/').endswith('/control'):
    sys.exit(0)
if os.environ['WORLD_SIZE'] == '1':
    time.sleep(4) # the last of the others has 1 s from its notice on
    sys.exit(0)
if me == 'n1':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else: # a signal that comes just before pause() would be slept through
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
say(gcp(), spot('instance-action'), len(azure()['Events']), ask(aws + 'nothing'), ask(aws + 'api/token', 'PUT'),
    ask('http://169.254.169.254/computeMetadata/v1/instance/preempted'))
rankquake.Client().event('other', said='asked')
if me == 'n1':
    say(gcp('?wait_for_change=true'))
    sys.exit(0)
signal.sigwait([signal.SIGTERM])
leave()
EOF
cat >"$dir/taken.yaml" <<EOF
cluster: {nodes: 4}
job:
  nnodes: "1:4"
  rdzv_conf: $patient_map
  run: [python3, $dir/asks.py, "{out}"]
timeline:
  - {id: gcp,   when: {event: other}, fault: node-preempt, with: {cloud: gcp, grace: 1s}, on: n1}
  - {id: azure, when: {after: gcp, round: 2, event: other}, fault: node-preempt, with: {cloud: azure, grace: 1s}, on: n2}
  - {id: aws,   when: {after: azure, round: 3, event: other}, fault: node-preempt, with: {cloud: aws, grace: 1s}, on: n3}
limits: {total: 240s}
EOF
runs 'three clouds' 0 "$dir/taken.yaml"
for node in n0 n1 n2 n3; do
    [ "$(head -n 1 "$dir"/out/*/said.$node)" = 'FALSE 404 0 404 400 403' ] || fail "$node before: $(cat "$dir"/out/*/said.$node)"
done
last() { tail -n 1 "$dir"/out/*/said.$1; }
[ "$(last n1)" = TRUE ] || fail "gcp: $(last n1)"
[[ $(last n2) =~ ^'Preempt n2 '[A-Z][a-z]{2},.*GMT$ ]] || fail "azure: $(last n2)"
[[ $(last n3) =~ ^'terminate '20[0-9]{2}-.*Z$ ]] || fail "aws: $(last n3)"
[ "$(last n0)" = 'FALSE 404 0 404 400 403' ] || fail "who stays: $(last n0)"
exit $failed
