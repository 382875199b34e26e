"""rankquake: lets a training script in Python tell RankQuake what it is doing. One file, nothing to install.

    import rankquake

    rq = rankquake.Client()                 # does nothing unless run under rankquake
    rq.ready()
    first = rq.resume(step, path)           # after a checkpoint was loaded; step 0, path "" otherwise
    for step in range(step + 1, steps + 1):
        loss = train(...)
        rq.step(step, loss=loss, samples=len(batch))
    rq.done(rankquake.digest(model.state_dict()))

The protocol is that of rankquake.h, which explains it. Without RANKQUAKE_EVENTS in the environment nothing
happens; when the harness dies the client goes silent and the job runs on. A harness that is stopped is waited
for, RANKQUAKE_WAIT seconds at most. Nothing here prints or raises.
Use one client per process, from one thread at a time; a forked child must make its own.

SPDX-License-Identifier: Apache-2.0
"""

import array
import hashlib
import json
import mmap
import os
import socket
import struct

KINDS = ("ready", "first-collective", "step", "checkpoint-begin", "checkpoint-write", "checkpoint-commit",
         "resume", "exit-barrier", "done", "region", "other", "worker-start", "exec-failed", "launcher", "samples")
_ASKS = {"weights": 30, "samples": 31}  # bits of the page's kinds that are no events
_PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
          "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
          "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID")
_PAGE = struct.Struct("=IIQQ")  # version, kinds, next_step, armed_seq
_MESSAGE_MAX = 4096
_IDS_A_MESSAGE = 160  # of samples: numbers of up to 20 digits fit
_OPEN_WAIT_S, _OPEN_WAIT_MAX_S = 5, 86400


def _open_wait_s():
    """How long a harness may be away before it is given up; its death ends the wait at once."""
    try:
        seconds = int(os.environ.get("RANKQUAKE_WAIT", "0"))
    except ValueError:
        seconds = 0
    return min(seconds, _OPEN_WAIT_MAX_S) if seconds > 0 else _OPEN_WAIT_S


def digest(state):
    """The SHA-256 of a model, for done(): a map of names to tensors or arrays, such as model.state_dict()."""
    total = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        if hasattr(value, "detach"):  # of PyTorch; copied from the device, which waits for it
            value = value.detach().cpu().contiguous()
            value = (value.float() if "bfloat16" in str(value.dtype) else value).numpy()
        total.update(name.encode() + b"\0")
        total.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    return total.hexdigest()


class Client:
    """Also a context manager: `with rankquake.Client() as rq`."""

    def __init__(self, path=None, rank=None, world_size=None):
        """rank and world_size: of a rank that its job has started itself and told so by arguments, as
        torch.multiprocessing.spawn does. From the environment, also one that was set since, they are told anyway."""
        self._socket = self._page = None
        self._pid, self._seq, self._lost = os.getpid(), 0, 0
        path = path or os.environ.get("RANKQUAKE_EVENTS")
        if path:
            try:
                self._open(path)
            except (OSError, ValueError, struct.error):
                self.close()
            self._tell_rank(rank, world_size)

    def _open(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self._socket.settimeout(_open_wait_s())
        self._socket.connect("\0" + path[1:] if path.startswith("@") else path)
        byte, control, _, _ = self._socket.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[:4])
        if byte != b"P" or not fds:
            raise ValueError("no page")
        try:
            self._page = mmap.mmap(fds[0], _PAGE.size, mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(fds[0])
        if _PAGE.unpack_from(self._page)[0] != 1:
            raise ValueError("another version")
        self._socket.settimeout(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection; from here on the client is silent."""
        if self._page:
            self._page.close()
        if self._socket:
            self._socket.close()
        self._socket = self._page = None

    def _tell_rank(self, rank, world_size):
        told = {name: os.environ[name] for name in _PLACE if os.environ.get(name)}
        if rank is not None and world_size is not None:
            told.update(RANK=str(int(rank)), WORLD_SIZE=str(int(world_size)))
        if "RANK" not in told or "WORLD_SIZE" not in told or not self._socket:
            return
        try:
            with open("/proc/self/environ", "rb") as environ:
                given = environ.read().split(b"\0")
        except OSError:
            return
        if any(f"{name}={told[name]}".encode() not in given for name in ("RANK", "WORLD_SIZE")):
            self.event("rank", env=told)

    @property
    def listening(self):
        """True when an event would go somewhere."""
        if self._socket and os.getpid() != self._pid:
            self.close()  # the parent's: the harness takes its end for the parent's end
        return self._socket is not None

    def asks(self, what):
        """True when the scenario asks for "weights" or "samples": what nobody asks for need not be computed."""
        return bool(self.listening and _PAGE.unpack_from(self._page)[1] >> _ASKS[what] & 1)

    def _armed(self, kind, step):
        _, kinds, next_step, seq = _PAGE.unpack_from(self._page)
        bit = KINDS.index(kind) if kind in KINDS else KINDS.index("other")
        waits = kinds >> bit & 1 and (kind != "step" or step >= next_step)
        return seq if waits else None

    def event(self, kind, **fields):
        """Sends an event. True: the harness held us for a while; False: just sent; None: not sent."""
        if not self.listening:
            return None
        armed = self._armed(kind, fields.get("step") or 0)
        self._seq += 1
        message = {"v": 1, "seq": self._seq, "lost": self._lost, "kind": kind}
        if armed is not None:
            message["armed"] = armed
        message.update(fields)
        try:
            data = json.dumps(message, default=str).encode()
            if len(data) > _MESSAGE_MAX:
                raise BlockingIOError
            self._socket.send(data, 0 if armed is not None else socket.MSG_DONTWAIT)
            if armed is not None and not self._socket.recv(1):
                self.close()
        except BlockingIOError:
            self._lost += 1  # a slow harness must not hang the job; the loss is told with the next event
            return None
        except OSError:
            self.close()
            return None
        return armed is not None

    def ready(self):
        return self.event("ready")

    def first_collective(self):
        return self.event("first-collective")

    def step(self, step, loss=None, samples=None, shards=None, weights=None):
        """Update `step` (from 1) has been applied. samples and shards: what this process itself computed; weights:
        at most 64 characters that are equal only where the weights are, such as digest(), when asks("weights")."""
        told = {"loss": None if loss is None else float(loss), "samples": samples, "shards": shards,
                "weights": None if weights is None else str(weights)[:64]}
        return self.event("step", step=int(step), **{k: v for k, v in told.items() if v is not None})

    def samples(self, step, epoch, of, ids):
        """The samples that this process has trained for `step`, each by its number in the data set; before step(),
        when asks("samples"). epoch counts from 0; of: how many different samples an epoch trains on all ranks."""
        ids = [int(i) for i in ids]
        for at in range(0, len(ids) or 1, _IDS_A_MESSAGE):
            told = self.event("samples", step=int(step), epoch=int(epoch), of=int(of),
                              ids=ids[at:at + _IDS_A_MESSAGE])
        return told

    def resume(self, step, path=""):
        return self.event("resume", step=int(step), path=str(path))

    def checkpoint_begin(self, step, path):
        return self.event("checkpoint-begin", step=int(step), path=str(path))

    def checkpoint_write(self, step, path):
        """Its bytes are written, neither synced nor renamed."""
        return self.event("checkpoint-write", step=int(step), path=str(path))

    def checkpoint_commit(self, step, path):
        return self.event("checkpoint-commit", step=int(step), path=str(path))

    def exit_barrier(self):
        return self.event("exit-barrier")

    def done(self, model=""):
        return self.event("done", model=str(model))
