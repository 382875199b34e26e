/* failed: preloaded together with held, it lets one call fail that the program itself makes to its C library, and none that libraries make. Without
 * FAILED_AT each call is written into the file FAILED_CALLS: its name and the places in the program that led to it. With it the call of that
 * number fails, and a symbolic link in HELD_LOGS says so. Only the first thread of the first process is asked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = 8, OWN = 3 };

static uintptr_t from, below;
static pid_t owner;
static long made, failing;
static int log_fd = -1;

static int find_program(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        if (p->p_type == PT_LOAD && end > below)
            below = end;
    }
    from = info->dlpi_addr;
    return 1; /* the program comes first */
}

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor(101))) static void begin(void) {
    const char *calls = getenv("FAILED_CALLS");
    dl_iterate_phdr(find_program, NULL);
    failing = number("FAILED_AT");
    owner = getpid();
    if (calls && !failing)
        log_fd =
            (int)syscall(2 /* open */, calls, 02002001 /* O_WRONLY | O_APPEND | O_CLOEXEC */, 0);
}

/* The call, and where in the program it was made. */
static void write_down(const char *name) {
    void *frames[DEPTH + OWN];
    char line[256];
    int n = backtrace(frames, DEPTH + OWN), at = snprintf(line, sizeof(line), "%s", name);
    for (int i = OWN - 1; i < n && at < (int)sizeof(line) - 20; i++)
        if ((uintptr_t)frames[i] >= from && (uintptr_t)frames[i] < below)
            at += snprintf(line + at, sizeof(line) - (size_t)at, " %zx",
                           (size_t)((uintptr_t)frames[i] - from));
    line[at++] = '\n';
    syscall(1 /* write */, log_fd, line, (size_t)at);
}

static bool fails(const char *name, const void *caller) {
    char path[4200];
    if ((uintptr_t)caller < from || (uintptr_t)caller >= below || owner != getpid() ||
        owner != gettid())
        return false;
    made++;
    if (log_fd >= 0)
        write_down(name);
    if (made != failing)
        return false;
    snprintf(path, sizeof(path), "%s/failed.%d", getenv("HELD_LOGS"), (int)owner);
    return symlink(name, path) == 0;
}

/* Arguments are numbers and pointers, and come in registers. */
typedef long call_fn(long, long, long, long, long, long);

#define CALL(name, result, error)                                                                  \
    call_fn instead_of_##name __asm__(#name);                                                      \
    long instead_of_##name(long a, long b, long c, long d, long e, long f) {                       \
        static call_fn *real;                                                                      \
        if (!real)                                                                                 \
            real = (call_fn *)dlsym(RTLD_NEXT, #name);                                             \
        if (fails(#name, __builtin_return_address(0))) {                                           \
            errno = error;                                                                         \
            return result;                                                                         \
        }                                                                                          \
        return real(a, b, c, d, e, f);                                                             \
    }

CALL(open, -1, EMFILE)
CALL(openat, -1, EMFILE)
CALL(memfd_create, -1, EMFILE)
CALL(socketpair, -1, EMFILE)
CALL(pipe2, -1, EMFILE)
CALL(signalfd, -1, EMFILE)
CALL(eventfd, -1, EMFILE)
CALL(inotify_init1, -1, EMFILE)
CALL(inotify_add_watch, -1, ENOSPC)
CALL(opendir, 0, EMFILE)
CALL(fdopendir, 0, ENOMEM)
CALL(readdir, 0, EIO)
CALL(gzopen, 0, EMFILE)
CALL(read, -1, EIO)
CALL(pread, -1, EIO)
CALL(write, -1, ENOSPC)
CALL(pwrite, -1, ENOSPC)
CALL(fsync, -1, EIO)
CALL(rename, -1, EIO)
CALL(renameat, -1, EIO)
CALL(unlink, -1, EIO)
CALL(unlinkat, -1, EIO)
CALL(mkdir, -1, ENOSPC)
CALL(mkdirat, -1, ENOSPC)
CALL(stat, -1, EIO)
CALL(lstat, -1, EIO)
CALL(fstat, -1, EIO)
CALL(fstatfs, -1, EIO)
CALL(faccessat, -1, EIO)
CALL(access, -1, EIO)
CALL(flock, -1, ENOLCK)
CALL(fcntl, -1, ENOLCK)
CALL(futimens, -1, EIO)
CALL(mmap, -1, ENOMEM)
CALL(fork, -1, EAGAIN)
CALL(pthread_create, EAGAIN, EAGAIN)
CALL(poll, -1, ENOMEM)
CALL(send, -1, ECONNRESET)
CALL(dlopen, 0, ENOENT)
