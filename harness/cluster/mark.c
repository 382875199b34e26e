#include "harness/cluster/mark.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/random.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME "RANKQUAKE_MARK"

enum { ENVIRONMENT_MAX = 4 << 20 };

struct mark_owner {
    unsigned long long space, ticks; /* the pid namespace's inode; when it began */
    int pid;
};

/* RANKQUAKE_MARK=<32 hex digits>.<pid namespace>.<pid>.<ticks> */
static bool read_mark(const char *mark, struct mark_owner *ret) {
    int bits = 0, end = 0;
    return sscanf(mark, NAME "=%*32[0-9a-f]%n.%llu.%d.%llu%n", &bits, &ret->space, &ret->pid,
                  &ret->ticks, &end) == 3 &&
           bits == (int)strlen(NAME "=") + 32 && !mark[end] && ret->pid > 0;
}

/* ---- a harness ---- */

/* Who listens here is known to the kernel, whoever writes down which process it is. */
static int listener = -1;

/* Returns a socket, and where in *ret, whose length is *ret_len. */
static int socket_of(const char *mark, struct sockaddr_un *ret, socklen_t *ret_len) {
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strcspn(mark, "=");
    str_copy(ret->sun_path + 1, sizeof(ret->sun_path) - 1, mark[n] ? mark + n + 1 : "");
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret->sun_path + 1));
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Who cannot listen cannot be halted from another terminal, and runs. */
static void be_found(void) {
    struct sockaddr_un at;
    socklen_t len;
    listener = socket_of(mark_own(), &at, &len);
    if (listener >= 0 && (bind(listener, (void *)&at, len) != 0 || listen(listener, 64) != 0))
        file_close(&listener);
}

pid_t mark_harness(const char *mark) {
    struct mark_owner o;
    struct sockaddr_un at;
    struct ucred who;
    socklen_t len, size = sizeof(who);
    if (!read_mark(mark, &o))
        return 0;
    FILE_CLOSE int fd = socket_of(mark, &at, &len);
    return fd >= 0 && connect(fd, (void *)&at, len) == 0 &&
                   getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0
               ? who.pid
               : 0;
}

void mark_begin(void) {
    char value[MARK_SIZE];
    uint64_t ticks = 0;
    process_start_ticks(getpid(), &ticks);
    snprintf(value, sizeof(value), "%016llx%016llx.%llu.%d.%llu", (unsigned long long)random_u64(),
             (unsigned long long)random_u64(), process_pid_space(0), (int)getpid(),
             (unsigned long long)ticks);
    if (setenv(NAME, value, 1) != 0)
        abort(); /* out of memory */
    file_close(&listener);
    be_found();
}

void mark_end(void) {
    file_close(&listener);
    unsetenv(NAME);
}

const char *mark_own(void) {
    extern char **environ;
    struct mark_owner o;
    for (char **e = environ; *e; e++)
        if (str_starts(*e, NAME "=") && read_mark(*e, &o) && o.pid == getpid())
            return *e;
    return "";
}

/* ---- a process of it ---- */

/* The first entry of a process's environment that begins like this and, where a whole one is
 * wanted, ends so too. */
static bool find_entry(pid_t pid, const char *begin, bool whole, char ret[MARK_SIZE]) {
    char path[64];
    BUF_FINI struct buf env = {0};
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRONMENT_MAX, &env, NULL) == 0)
        for (const char *at = buf_str(&env), *end = at + env.len; at < end && !found;
             at += strlen(at) + 1)
            found = (whole ? str_eq(at, begin) : str_starts(at, begin)) &&
                    (!ret || str_copy(ret, MARK_SIZE, at));
    return found;
}

bool mark_of(pid_t pid, char ret[MARK_SIZE]) {
    return find_entry(pid, NAME "=", false, ret);
}

bool mark_is_carried(const char *mark, pid_t pid) {
    struct mark_owner o;
    uint64_t ticks;
    return read_mark(mark, &o) && process_start_ticks(pid, &ticks) == 0 && ticks >= o.ticks &&
           find_entry(pid, mark, true, NULL);
}

bool mark_is_orphaned(const char *mark) {
    struct mark_owner o;
    uint64_t ticks;
    int status;
    if (!read_mark(mark, &o) || !o.space || o.space != process_pid_space(0))
        return false;
    int r = process_start_ticks(o.pid, &ticks);
    return r == -ESRCH || (r == 0 && ticks != o.ticks) ||
           (r == 0 && process_zombie_status(o.pid, &status) != -EAGAIN);
}
