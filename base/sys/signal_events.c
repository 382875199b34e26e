#include "base/sys/signal_events.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENT "events/signal/signal_generate/"

enum { RING_PAGES = 8, DESCRIPTION_MAX = 8192, RAW_MAX = 256 };

static const char filter[] = "sig==1||sig==2||sig==3||sig==9||sig==15||sig==18||sig==19||sig==20";

struct cpu_ring {
    int fd;
    struct perf_event_mmap_page *page; /* the data lie behind it */
};

struct signal_events {
    int epoll;
    struct cpu_ring *rings;
    size_t rings_n, at;
    size_t signo_at, to_at; /* in what the tracepoint tells */
    long id;
};

/* ---- what the tracepoint looks like ---- */

/* tracefs where it is mounted; else mounted for this descriptor alone. */
static int open_tracefs(void) {
    int fd = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, EVENT "id", R_OK, 0) == 0)
        return fd;
    file_close(&fd);
#ifdef SYS_fsopen
    enum { CREATE = 6, CLOEXEC = 1 }; /* FSCONFIG_CMD_CREATE; FSOPEN_ and FSMOUNT_CLOEXEC */
    FILE_CLOSE int fs = (int)syscall(SYS_fsopen, "tracefs", CLOEXEC);
    if (fs < 0 || syscall(SYS_fsconfig, fs, CREATE, NULL, NULL, 0) != 0)
        return -errno;
    fd = (int)syscall(SYS_fsmount, fs, CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
#else
    return -ENOTSUP;
#endif
}

static int read_at(int dir, const char *path, char *ret, size_t size) {
    FILE_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

/* "field:int sig;	offset:8;	size:4;" */
static int find_field(const char *text, const char *field, size_t *ret) {
    const char *line = strstr(text, field);
    const char *offset = line ? strstr(line, "offset:") : NULL;
    const char *size = offset ? strstr(offset, "size:4;") : NULL;
    if (!size)
        return -ENOTSUP;
    *ret = (size_t)strtoul(offset + strlen("offset:"), NULL, 10);
    return *ret + sizeof(int) <= RAW_MAX ? 0 : -ENOTSUP;
}

static int describe(struct signal_events *s) {
    char text[DESCRIPTION_MAX];
    FILE_CLOSE int dir = open_tracefs();
    int r = dir < 0 ? dir : read_at(dir, EVENT "id", text, sizeof(text));
    s->id = r ? 0 : strtol(text, NULL, 10);
    r = r ? r : read_at(dir, EVENT "format", text, sizeof(text));
    r = r ? r : find_field(text, "field:int sig;", &s->signo_at);
    return r ? r : find_field(text, "field:pid_t pid;", &s->to_at);
}

/* ---- rings: one per processor ---- */

static size_t ring_bytes(void) {
    return (size_t)RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

static int ring_open(const struct signal_events *s, int cpu, struct cpu_ring *ret) {
    struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT,
                                .size = sizeof(a),
                                .config = (uint64_t)s->id,
                                .sample_period = 1,
                                .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
                                .wakeup_events = 1,
                                .use_clockid = 1,
                                .clockid = CLOCK_MONOTONIC};
    struct epoll_event e = {.events = EPOLLIN};
    int fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t bytes = ring_bytes() + (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *ret = (struct cpu_ring){fd, page == MAP_FAILED ? NULL : page};
    if (!ret->page || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) != 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
        return -errno;
    return 0;
}

/* Processors that are off have none. */
static int open_rings(struct signal_events *s) {
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    s->rings = mem_array(struct cpu_ring, (size_t)cpus);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (long cpu = 0; cpu < cpus && s->epoll >= 0; cpu++) {
        struct cpu_ring *r = &s->rings[s->rings_n];
        *r = (struct cpu_ring){-1, NULL};
        int code = ring_open(s, (int)cpu, r);
        s->rings_n += r->fd >= 0;
        if (code && code != -ENODEV)
            return code;
    }
    return s->epoll < 0 ? -errno : s->rings_n ? 0 : -ENOTSUP;
}

static void copy_out(const struct cpu_ring *r, uint64_t from, void *to, size_t n) {
    const char *data = (const char *)r->page + sysconf(_SC_PAGESIZE);
    size_t size = ring_bytes();
    for (size_t i = 0; i < n; i++)
        ((char *)to)[i] = data[(from + i) % size];
}

struct sample {
    struct perf_event_header header;
    uint32_t by, by_thread;
    uint64_t t_ns;
    uint32_t raw_n;
    char raw[RAW_MAX];
} __attribute__((packed));

/* 1, 0 or -ENOBUFS, as signal_events_read. */
static int ring_read(const struct signal_events *s, struct cpu_ring *r, struct signal_event *ret) {
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = r->page->data_tail;
    int found = 0;
    while (tail != head && !found) {
        struct sample m = {0};
        copy_out(r, tail, &m.header, sizeof(m.header));
        size_t n = m.header.size < sizeof(m) ? m.header.size : sizeof(m);
        copy_out(r, tail, &m, n);
        tail += m.header.size ? m.header.size : head - tail;
        if (m.header.type == PERF_RECORD_LOST)
            found = -ENOBUFS;
        if (m.header.type != PERF_RECORD_SAMPLE)
            continue;
        *ret = (struct signal_event){.t_ns = (int64_t)m.t_ns, .by = (pid_t)m.by};
        memcpy(&ret->signo, m.raw + s->signo_at, sizeof(ret->signo));
        memcpy(&ret->to, m.raw + s->to_at, sizeof(ret->to));
        found = 1;
    }
    __atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
    return found;
}

int signal_events_read(struct signal_events *s, struct signal_event *ret) {
    for (; s->at < s->rings_n; s->at++) {
        int r = ring_read(s, &s->rings[s->at], ret);
        if (r)
            return r;
    }
    s->at = 0;
    return 0;
}

int signal_events_fd(const struct signal_events *s) {
    return s->epoll;
}

/* One to ourselves, which does nothing: is it told, and by the number that we know? */
static int try_one(struct signal_events *s) {
    struct signal_event e;
    int r;
    kill(getpid(), SIGCONT);
    while ((r = signal_events_read(s, &e)) != 0)
        if (r == 1 && e.to == getpid() && e.by == getpid() && e.signo == SIGCONT)
            return 0;
    return -EPERM;
}

struct signal_events *signal_events_open(struct err *err) {
    struct signal_events *s = mem_new(struct signal_events);
    s->epoll = -1;
    int r = describe(s);
    r = r ? r : open_rings(s);
    r = r ? r : try_one(s);
    if (r == 0)
        return s;
    err_say(err, r == -EPERM || r == -EACCES ? -EPERM : -ENOTSUP,
            "the kernel does not tell of signals here (signal:signal_generate: %s): it does root, "
            "outside of containers or with CAP_PERFMON and the host's pid namespace",
            strerror(-r));
    return signal_events_close(s);
}

struct signal_events *signal_events_close(struct signal_events *s) {
    if (!s)
        return NULL;
    for (size_t i = 0; i < s->rings_n; i++) {
        if (s->rings[i].page)
            munmap(s->rings[i].page, ring_bytes() + (size_t)sysconf(_SC_PAGESIZE));
        file_close(&s->rings[i].fd);
    }
    file_close(&s->epoll);
    free(s->rings);
    free(s);
    return NULL;
}
