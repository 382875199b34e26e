#!/usr/bin/env python3
"""Tries launchers with --sandbox. First the system and libseccomp are played (confined.c, seccomp.c): each call by which a launcher and its guard give up rights
is noted, and fails once; kernels, libraries, mounts and devices are of each kind. Then, with what is really here, a worker asks for each system call
there is, and with each argument that a filter looks at. Usage: confining.py RECORD, which is what must be noted; WRITE=1 writes it anew, to be read
before it is believed. As root; needs a C compiler.

What a part of the first does otherwise than an undisturbed launcher stands with - and +."""
import concurrent.futures
import ctypes
import difflib
import errno
import itertools
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from noted import note, settle

HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTIONS = "INIT", "ATTR", "RULE", "NAME", "EXPORT", "RELEASE"


# ---- what is played ----

SETTINGS = """sysfs cgroup cgroup2 debugfs tracefs securityfs efivarfs configfs resctrl pstore binfmt_misc selinuxfs smackfs fusectl bpf nfsd""".split()
OTHERS = "tmpfs ext4 ramfs sysf sysfss sysfs2 cgroup3 mqueue hugetlbfs overlay nfs devpts fuse".split()
FLAGS = "nosuid", "nodev", "noexec"
CLOSED = 4, 6, 7, 9, 13, 14, 21, 29, 81, 86, 89, 90, 99, 108, 116, 153, 162, 166, 180, 188, 189, 202, 203, 204, 212, 229
NAMES = "nvme ng dax watchdog rtc hidraw ipmi mei tpm fw gpiochip ptp pps media cec vport".split()


def mounts(here):
    """A table in which each kind has each set of flags, by turns, and everything is more than the launcher has room for at first."""
    sets = itertools.cycle(["rw"] + ["rw," + ",".join(s) for n in (1, 2, 3) for s in itertools.combinations(FLAGS, n)])
    for kind in SETTINGS + OTHERS:
        yield f"none {here}/{kind} {kind} {next(sets)} 0 0"
        yield f"none {here}/{kind}-ro {kind} ro,relatime 0 0"
    for i in range(40):
        yield f"none {here}/filler{i} tmpfs rw 0 0"
    for name, options in (("proc", "rw,nosuid"), ("proc-ro", "ro"), ("proc-part", "rw,noexec"), ("proc-hidden", "rw"), ("proc-0", "rw"), ("proc-9", "rw"), ("proc-colon", "rw,nodev")):
        yield f"proc {here}/{name} proc {options} 0 0"
    yield "none /dev tmpfs rw,nosuid 0 0"
    for name, options in (("dev", "rw"), ("dev-noexec", "ro,noexec"), ("dev-nodev", "rw,nodev"), ("dev-of-another", "rw"), ("dev-hidden", "rw"), ("no-terminals", "rw")):
        yield f"none {here}/{name} devtmpfs {options} 0 0"
    yield f"none {here}/with\\040blank sysfs rw 0 0"
    yield f"none {here}/last cgroup2 rw,noexec 0 0"


def devices():
    yield "dir 0 0 d ."
    for minor in range(13):
        yield f"char 1 {minor} f memory{minor}"
    for minor in range(4):
        yield f"char 5 {minor} f terminal{minor}"
    yield "char 5 2 f ptmx"
    yield "char 5 2 l link"
    yield "char 1 3 d null"
    yield "file 0 0 f file"
    yield "block 1 3 f ram3"
    for major in sorted({m for c in CLOSED for m in (c - 1, c, c + 1)} | {0, 195, 226, 237, 511}):
        if major not in (1, 5, 10):
            yield f"char {major} 0 f major{major}"
    for name in ("rdma_cm", "knem", "xpmem", "fuse", "kvm", "knem2", "kne", "infiniband/rdma_cm", "cuse", "nvidia"):
        yield f"char 10 200 f {name}"
    for name in NAMES:
        for way in ("{}", "{}0", "{}9", "{}n", "{}_1", "a{}", "{}-1", "deep/{}0", "{}0/x"):
            yield "char 240 7 f " + way.format(name)
    for name in ("nvidia0", "nvidiactl", "dri/card0", "infiniband/uverbs0", "bsg/1", "x/bsg/2:0", "bsgx/3", "bsg", "nvm", "nvmf"):
        yield f"char 240 8 f {name}"


class Place:
    """A folder with the played system and library, the table of mounts, and what lies where they lead."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="confined-")
        os.chmod(self.folder, 0o755)
        self.compile("confined")
        self.compile("seccomp")
        for name in FUNCTIONS:
            self.compile("seccomp", f"-DNO_{name}", f"without-{name}")
        with open(self.at("mounts"), "w") as f:
            f.writelines(line + "\n" for line in mounts(self.folder))
        with open(self.at("devices"), "w") as f:
            f.writelines(line + "\n" for line in devices())
        with open(self.at("devices.few"), "w") as f:
            f.write("dir 0 0 d .\nchar 1 3 f null\nchar 5 2 f ptmx\nchar 4 0 f tty0\nchar 195 0 f nvidia0\n")
        for name in ("dev/pts", "dev-noexec/pts", "dev-nodev", "dev-of-another", "no-terminals"):
            os.makedirs(self.at(name))
        for name in ("dev/pts/ptmx", "dev-noexec/pts/ptmx"):
            open(self.at(name), "w").close()
        os.chown(self.at("dev-of-another"), 1, 1)
        for name in ("proc", "proc-ro", "proc-0", "proc-9", "proc-colon"):
            self.make_proc(self.at(name))
        os.makedirs(self.at("proc-part/sys"))
        self.file("proc-0/0", 0o644)
        self.file("proc-9/9", 0o644)
        self.file("proc-colon/:", 0o644)

    def at(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, mode):
        open(self.at(name), "w").close()
        os.chmod(self.at(name), mode)

    def make_proc(self, proc):
        for name in ("sys", "irq", "pressure", ".dir"):
            os.makedirs(os.path.join(proc, name))
        for name, mode in (("kcore", 0o400), ("meminfo", 0o444), ("sysrq-trigger", 0o200), ("latency", 0o644), (".hidden", 0o644), ("group", 0o020), ("others", 0o002),
                           ("nobody", 0o000), ("executed", 0o111), ("zz", 0o644)):
            self.file(os.path.join(proc, name), mode)
        os.symlink("1", os.path.join(proc, "self"))
        os.symlink("self/mounts", os.path.join(proc, "mounts"))
        os.mkfifo(os.path.join(proc, "fifo"), 0o666)
        if proc.endswith("/proc"):
            os.mkdir(os.path.join(proc, "1"))

    def compile(self, source, *flags):
        name = flags[1] if flags else source
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags[:1], "-o", self.at(f"{name}.so"), os.path.join(HERE, f"{source}.c")], check=True)

    def plain(self, text):
        text = re.sub(rf"\b{os.uname().nodename}\b", "HOST", text)
        return re.sub(r"\b(pid )?\d+( ms)?\b", lambda m: f"{m[1] or ''}N{m[2] or ''}" if m[1] or m[2] else m[0], re.sub(r"[^ ]*_[A-Za-z0-9]{8}/", "TEMP/", text.replace(self.folder, "."))).splitlines()

    def play(self, command="true", options=(), library="seccomp", sandbox=True, **env):
        """What is noted, in the order in which it was done by each, and what is said."""
        folder = tempfile.mkdtemp(dir=self.folder)
        os.chmod(folder, 0o755)
        log = os.path.join(folder, "log")
        open(log, "w").close()
        known = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_SIZE", "MASTER_", "TORCHELASTIC", "PET_")
        whole = {k: v for k, v in os.environ.items() if not k.startswith(known)}
        whole.update(LD_PRELOAD=self.at("confined.so"), CONFINED_LOG=log, CONFINED_LIBRARY=self.at(f"{library}.so"), CONFINED_MOUNTS=self.at("mounts"),
                     CONFINED_DEVICES=self.at("devices"), CONFINED_HERE=self.folder, TMPDIR=folder, XDG_RUNTIME_DIR=folder, LC_ALL="C", **env)
        done = subprocess.run(["rankrun", *(["--sandbox"] if sandbox else []), "--rdzv-id=r", *options, "sh", "-c", command], env=whole, cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with open(log) as f:
            noted = self.plain(f.read().replace(folder, "TEMP"))
        said = [f"says {line}" for line in self.plain(done.stdout.replace(folder, "TEMP"))]
        return [line for role in ("agent", "guard") for line in noted if line.startswith(role)] + said + [f"ends with {done.returncode}"]


# ---- the parts ----

# Of those that are alike the first, the last and one in between are enough.
LIKE = re.compile(r"agent (?:.*(, argument )|.*(prctl CAPBSET|library: in it)|mount .*(bind all|private|slave|read-only|nodev) )")


def to_fail(noted):
    """Each call, by its number among those of its role, and with which errors it is to fail."""
    numbers, alike = {"agent": 0, "guard": 0}, {}
    for line in noted:
        if line[:5] in numbers:
            numbers[line[:5]] += 1
            like = LIKE.match(line)
            alike.setdefault(like[like.lastindex] if like else line, []).append((line, numbers[line[:5]]))
    for some in alike.values():
        for line, number in dict.fromkeys((some[0], some[len(some) // 2], some[-1])):
            yield line, number, [errno.EPERM] + ([errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EBUSY] if " mount " in line and (line, number) == some[0] else [])


def differs(noted, whole):
    """What is otherwise. Of many in a row that are missing the first and their number."""
    for how, a, b, c, d in difflib.SequenceMatcher(None, whole, noted, autojunk=False).get_opcodes():
        if how == "equal":
            continue
        for sign, group in (("-", whole[a:b]), ("+", noted[c:d])):
            if sign == "-" and len(group) > 6:
                group = [group[0], f"and {len(group) - 2} more, to", group[-1]]
            for line in group:
                note("   ", sign, line)


# What agent and guard have open, but for what they wait and speak with.
OPEN = "for p in $PPID $(ps -o ppid= -p $PPID); do for f in /proc/$p/fd/*; do readlink $f; done | grep -Ev '^(pipe|socket|anon_inode:.(event|signal|timer|pid))|^/dev/null$' | sort; done"


def play_undisturbed(place):
    for line in place.play():
        note("   ", line)


def parts():
    """Names, and how each is played."""
    for version in (-errno.ENOSYS, -errno.EOPNOTSUPP, 0, 1, 2, 3, 5, 6, 8):
        yield f"a kernel of which Landlock says {version}", dict(CONFINED_LANDLOCK=str(version))
    yield "not as root", dict(CONFINED_UID="1000")
    for names in ("none", "odd", "one"):
        yield f"a library that knows names: {names}", dict(SECCOMP_NAMES=names)
    for name in FUNCTIONS:
        yield f"a library without {name}", dict(library=f"without-{name}")
    yield "no library", dict(library="nowhere")
    for n in (0, 1, 4096, 4097):
        yield f"a filter of {n}", dict(SECCOMP_LENGTH=str(n))
    yield "three workers", dict(options=["--nproc-per-node=3"])
    yield "two rounds", dict(options=["--max-restarts=1"], command="exit $((1 - $TORCHELASTIC_RESTART_COUNT))")
    yield "a guard that is killed", dict(options=["--max-restarts=1"], command="[ $TORCHELASTIC_RESTART_COUNT = 1 ] || kill -9 $PPID")
    yield "what is open", dict(command=OPEN)
    yield "no sandbox, and what is open", dict(sandbox=False, command=OPEN)
    yield "no sandbox, and a guard that is killed", dict(sandbox=False, options=["--max-restarts=1"], command="[ $TORCHELASTIC_RESTART_COUNT = 1 ] || kill -9 $PPID")


def failing(whole):
    for line, number, codes in to_fail(whole):
        for code in codes:
            yield f"{errno.errorcode[code]} from {line}", dict(CONFINED_FAIL=f"{line[:5]} {number} {code}")
        if "unshare" in line:  # it does no harm where settings cannot be written either
            yield "no namespace, and no right to write", dict(CONFINED_FAIL=f"agent {number} {errno.EPERM}", CONFINED_SETTING=str(errno.EACCES))


def play_parts(place):
    whole = place.play()
    some = [*parts(), *failing(whole)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, _), noted in zip(some, pool.map(lambda part: place.play(**part[1]), some)):
            note(f"# {name}")
            differs(noted, whole)


# ---- each system call ----

CALLS = [n for n in range(512) if n not in (335, 336)]  # those are the kernel's own, and pass by all filters
TRAMPOLINE = bytes.fromhex("4889f8 4889f7 4889d6 4889ca 4d89c2 4d89c8 4c8b4c2408 0f05 c3")  # as syscall(2) of the C library, without errno
OLD = bytes.fromhex("53 4889f8 4889f3 4889d1 4889ca cd80 4898 5b c3")  # a call of 32 bits
INTS = 0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, (1 << 64) - 1


class Asker:
    """A page of machine code. Whatever is called from there, and is not refused before, is answered with ENOSYS, and not done."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.page.write(TRAMPOLINE + OLD)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.page))
        kind = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_ulong] * 7)
        self.call, self.old = kind(at), kind(at + len(TRAMPOLINE))
        trace, allow = 0x7FF00000, 0x7FFF0000
        steps = [(0x20, 0, 0, 12), (0x15, 0, 3, at >> 32), (0x20, 0, 0, 8), (0x54, 0, 0, 0xFFFFF000), (0x15, 1, 0, at & 0xFFFFF000), (0x6, 0, 0, allow), (0x6, 0, 0, trace)]
        code = b"".join(struct.pack("HBBI", *s) for s in steps)
        self.code = ctypes.create_string_buffer(code)
        program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(self.code))
        if self.libc.syscall(317, 1, 0, ctypes.create_string_buffer(program)):
            sys.exit(f"a filter: {os.strerror(ctypes.get_errno())}")

    def ask(self, number, *args, old=False):
        answer = (self.old if old else self.call)(number, *args, *[0] * (6 - len(args)))
        answer = answer if answer < 1 << 63 else answer - (1 << 64)
        return "-" if answer == -errno.ENOSYS else errno.errorcode[-answer] if -4096 < answer < 0 else answer


def ranges(numbers):
    """Of numbers that rise."""
    ret = []
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        group = [n for _, n in group]
        ret.append(f"{group[0]}-{group[-1]}" if group[1:] else f"{group[0]}")
    return ret


def answers(name, asked):
    """asked: what was asked for, and what was answered. What is not refused is counted."""
    of = {}
    for what, answer in asked:
        of.setdefault(answer, []).append(what)
    print(f"{name}: {len(of.pop('-', ()))} would be done")
    for answer, whats in sorted(of.items(), key=str):
        print(f"{name}: {answer}:", *(ranges(whats) if isinstance(whats[0], int) else dict.fromkeys(whats)))


def bits():
    yield from ((f"{1 << i:#x}", 1 << i) for i in range(64))


def ask_all():
    """The worker."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(435, 1, 0)
    print(f"clone3 is answered with {errno.errorcode[ctypes.get_errno()]}")
    a = Asker()
    for name, args in (("of nothing", ()), ("of all", ((1 << 64) - 1,) * 6)):
        answers(f"calls {name}", ((n, a.ask(n, *args)) for n in CALLS))
    answers("calls by numbers of x32", ((n, a.ask(0x40000000 + n)) for n in CALLS))
    answers("calls of 32 bits", ((n, a.ask(n, old=True)) for n in CALLS))
    answers("clone with", ((t, a.ask(56, v | 17)) for t, v in bits()))
    answers("clone with, and all above", ((t, a.ask(56, v | 0xFFFFFFFF << 32 | 17)) for t, v in bits()))
    for call, at in ((133, 1), (259, 2)):
        for high in (0, 1 << 16, 0xFFFFFFFF << 32):
            answers(f"call {call}, mode and {high:#x}", ((f"{kind << 12:#o}", a.ask(call, *[0] * at, kind << 12 | 0o644 | high)) for kind in range(16)))
    for high in (0, 1, 0xFFFFFFFF):
        answers(f"ioctl with {high:#x} above", ((f"{r:#x}", a.ask(16, 0, r | high << 32)) for r in (*range(0x5400, 0x5480), 0, 0x80045430, 0xFFFFFFFF)))
    answers("ioctl of other descriptors", ((f"{fd:#x}", a.ask(16, fd, 0x5412)) for fd in INTS))
    answers("prlimit64 of and to", ((f"{pid:#x},{new:#x}", a.ask(302, pid, 7, new, old)) for pid in INTS for new in INTS for old in (0, 1)))
    for name in ("NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        with open("/proc/self/status") as f:
            print(next(" ".join(line.split()) for line in f if line.startswith(name + ":")))


def play_calls(place):
    command = ["rankrun", "--sandbox", "--rdzv-id=r", sys.executable, os.path.abspath(__file__), "--ask"]
    env = {**os.environ, "TMPDIR": place.folder, "XDG_RUNTIME_DIR": place.folder}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in done.stdout.splitlines():
        if "Landlock here" not in line:  # as the kernel is
            note("   ", line)
    note("    ends with", done.returncode)


def main():
    if sys.argv[1:] == ["--ask"]:
        ask_all()
        return
    record, place = os.path.abspath(sys.argv[1]), Place()
    for name, play in [(n, f) for n, f in globals().items() if n.startswith("play_")]:
        note(f"# {name[5:].replace('_', ' ')}")
        play(place)
    shutil.rmtree(place.folder)
    settle(record)


main()
