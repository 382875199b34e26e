"""A history out of the plain log of some other cluster: from_log.py <LOG >HISTORY. It uses nothing of rankquake's."""
import json
import sys

seq = 0
workers = {}  # pid: node


def put(seconds, source, kind, **fields):
    global seq
    seq += 1
    print(json.dumps({"seq": seq, "t": round(float(seconds) * 1e9), "source": source, "kind": kind, **fields}))


def start(t, node, pid, rank, local, world, restart):
    workers[pid] = node
    env = {"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "GROUP_RANK": "0",
           "ROLE_RANK": rank, "ROLE_WORLD_SIZE": world, "GROUP_WORLD_SIZE": "1", "MASTER_ADDR": "n0",
           "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": restart, "TORCHELASTIC_MAX_RESTARTS": "3",
           "TORCHELASTIC_RUN_ID": "job"}
    put(t, "probe", "worker-start", node=node, pid=pid, argv0="train", env=env)
    put(t, "probe", "worker-exec", node=node, pid=pid)


put(0, "harness", "run", v=1, scenario="from-a-log", launcher="rankrun", control=False)
for line in sys.stdin:
    t, *word = line.split()
    if word[0] == "up":
        put(t, "harness", "node-up", node=word[1], addr="10.0.0.1")
        put(t, "kernel", "agent-start", node=word[1], pid=int(word[2]))
    elif word[0] == "start":
        start(t, word[1], int(word[2]), *word[3:])
    elif word[0] in ("step", "resume"):
        pid = int(word[1])
        put(t, "job", word[0], node=workers[pid], pid=pid, lost=0, step=int(word[2]))
    elif word[0] == "exit":
        pid = int(word[1])
        put(t, "kernel", "worker-exit", node=workers[pid], pid=pid, **{word[2]: int(word[3])})
    elif word[0] == "down":
        put(t, "kernel", "agent-exit", node=word[1], pid=int(word[2]), code=int(word[3]))
        put(t, "kernel", "leftovers", node=word[1], processes=[], ports=[], shm=[], cgroups=[])
    elif word[0] == "end":
        put(t, "harness", "job-end", why="ended")
        put(t, "harness", "health", left=[], complete=True)
