"""A stranger's training script of the standard library alone, which knows nothing of RankQuake: the ranks fit a line together and
save it every ten steps. Usage, under any launcher that sets torchrun's environment: package_job.py [STEPS]."""
import json
import os
import socket
import sys
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLACE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
SAVED = "line.json"


def meet():
    """The files through which rank 0 hears the others, and they hear it."""
    if RANK == 0:
        door = socket.create_server(("", PLACE[1]), reuse_port=True)
        return [door.accept()[0].makefile("rw") for _ in range(WORLD - 1)]
    while True:
        try:
            return [socket.create_connection(PLACE, timeout=60).makefile("rw")]
        except ConnectionRefusedError:
            time.sleep(0.05)


def tell(file, value):
    file.write(json.dumps(value) + "\n")
    file.flush()


def hear(file):
    line = file.readline()
    if not line:
        sys.exit("a peer is gone")
    return json.loads(line)


def mean(peers, mine):
    if RANK:
        tell(peers[0], mine)
        return hear(peers[0])
    all_of_them = [mine] + [hear(p) for p in peers]
    value = [sum(part) / WORLD for part in zip(*all_of_them)]
    for peer in peers:
        tell(peer, value)
    return value


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    peers, state = meet(), {"step": 0, "a": 0.0, "b": 0.0}
    if os.path.exists(SAVED):
        with open(SAVED) as file:
            state = json.load(file)
    for step in range(state["step"] + 1, steps + 1):
        x = [(step * 31 + i * WORLD + RANK) % 17 / 17 for i in range(64)]
        miss = [state["a"] * v + state["b"] - (3 * v + 1) for v in x]
        a, b, loss = mean(peers, [sum(m * v for m, v in zip(miss, x)) / 64, sum(miss) / 64, sum(m * m for m in miss) / 64])
        state = {"step": step, "a": state["a"] - 0.5 * a, "b": state["b"] - 0.5 * b}
        time.sleep(0.02)
        if RANK == 0 and step % 10 == 0:
            print("step %d loss %.4f" % (step, loss), flush=True)
            with open(SAVED + ".part", "w") as file:
                json.dump(state, file)
            os.rename(SAVED + ".part", SAVED)


if __name__ == "__main__":
    main()
