#!/usr/bin/env bash
# A job in which one side asks and the other only answers: once they are parted, nothing is left to drop on the way back. What
# was dropped on the way there, and that nothing passed on the way back, shows the partition; and a check that fails is not
# hidden by a fault that nobody can see.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'python3 is missing, which asks and answers'; exit 77; }
. tests/live/patience.bash
. tests/live/runs.bash

# Rank 0 answers datagrams; rank 1 asks again after 20 ms, until 30 were answered and a fault that there is is over. It tells
# the harness which question comes next and is held there: no answer is on its way when the fault comes in force.
cat >"$dir/ask.py" <<EOF
import os, socket, sys
sys.path.insert(0, '$PWD/scenarios/jobs')
import rankquake
rank, out = int(os.environ['RANK']), sys.argv[1]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if rank == 0:
    s.bind(('', 7007))
    s.settimeout(60)
    while True:
        said, whom = s.recvfrom(100)
        s.sendto(said, whom)
        if said == b'bye':
            sys.exit(0)
q = rankquake.Client()
def ask(said):
    s.sendto(said, (os.environ['MASTER_ADDR'], 7007))
    try:
        while s.recv(100) != said: # an earlier answer that was late
            pass
        return True
    except socket.timeout:
        return False
def is_over():
    with open(out + '/history.jsonl') as f:
        return '"kind":"fault-recovered"' in f.read()
control = out.rstrip('/').endswith('/control')
s.settimeout(0.02)
answered = asked = 0
while answered < 30 or not (control or is_over()):
    asked += 1
    q.event('other', said='asks', n=asked)
    answered += ask(b'%d' % asked)
s.settimeout(60)
while not ask(b'bye'):
    pass
EOF
cat >"$dir/ask.yaml" <<EOF
cluster: {nodes: 2}
job:
  rdzv_conf: $patient_map
  run: [python3, $dir/ask.py, "{out}"]
timeline:
  - {id: cut, when: {event: other, nth: 15}, fault: net-partition, with: {planes: data}, on: node of rank 1, for: 500ms}
limits: {total: 240s}
EOF
runs 'who only answers' 0 "$dir/ask.yaml"
recorded 'who only answers' '"source":"wire","kind":"fault-evidence","id":"cut".*"fewest":0'

# One way of it is open: then answers would come, if there were questions.
sed 's/planes: data/planes: data, direction: to/' "$dir/ask.yaml" >"$dir/answers.yaml"
runs 'answers that are lost' 0 "$dir/answers.yaml"

# The same over a connection, on nodes that are processes: the kernel counts at the sockets what comes and what it drops.
cat >"$dir/connected.py" <<EOF
import os, socket, sys
sys.path.insert(0, '$PWD/scenarios/jobs')
import rankquake
rank, out = int(os.environ['RANK']), sys.argv[1]
told = out + '/port'
try:
    os.mkfifo(told)
except FileExistsError:
    pass
if rank == 0:
    s = socket.create_server(('', 0))
    with open(told, 'w') as f:
        f.write(str(s.getsockname()[1]))
    s = s.accept()[0]
    while True:
        said = s.recv(1)
        s.sendall(said)
        if said == b'z':
            sys.exit(0)
with open(told) as f:
    s = socket.create_connection((os.environ['MASTER_ADDR'], int(f.read())))
q = rankquake.Client()
for n in range(30):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1) # acknowledges now: an answer that is acknowledged late is sent again
    q.event('other', said='asks', n=n)
    s.sendall(b'z' if n == 29 else b'a')
    if not s.recv(1):
        sys.exit('no answer')
EOF
sed "s,ask.py,connected.py,; /^cluster:/s/2/2, isolation: processes/" "$dir/ask.yaml" >"$dir/connected.yaml"
runs 'who only answers, over a connection' 0 "$dir/connected.yaml"
recorded 'who only answers, over a connection' '"source":"kernel","kind":"fault-evidence","id":"cut".*"fewest":0'
exit $failed
