#include "harness/host/host_left.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "faults/mechanism/socket_cut.h"
#include "harness/carrier/host_record.h"
#include "harness/host/host_clock.h"
#include "harness/host/sockets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "RANKQUAKE_HELPER"

enum { ENVIRONMENT_MAX = 4 << 20, WORDS_MAX = 256 };

static const int64_t END_WAIT_NS = 5000000000, HALT_WAIT_NS = 30000000000;

/* ---- names of helpers ---- */

struct helper_name {
    int pid;
    unsigned long long start; /* in clock ticks */
    unsigned long long space; /* the inode of the pid namespace in which that is its number */
    char run[128];
};

void host_left_mark(const char *run) {
    char value[WORDS_MAX];
    uint64_t start = 0;
    process_start_ticks(getpid(), &start);
    snprintf(value, sizeof(value), "%d.%llu.%llu.%.127s", (int)getpid(), (unsigned long long)start,
             process_pid_space(0), run);
    if (setenv(NAME, value, 1) != 0)
        abort(); /* out of memory */
}

const char *host_left_name(void) {
    const char *name = getenv(NAME);
    return name ? name : "";
}

static bool read_name(const char *text, struct helper_name *ret) {
    int end = 0;
    if (sscanf(text, "%d.%llu.%llu.%n", &ret->pid, &ret->start, &ret->space, &end) != 3 || !end ||
        ret->pid <= 0)
        return false;
    str_copy(ret->run, sizeof(ret->run), text + end);
    return true;
}

/* One that was killed may take a while in the kernel; it executes nothing any more. */
static bool executes(pid_t pid) {
    char path[64], link[16];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, link, sizeof(link)) >= 0 || errno != ENOENT;
}

/* Of one in a container nobody here knows whether it lives. */
static bool is_of_here(const struct helper_name *h) {
    return h->space == process_pid_space(0);
}

static bool lives(const struct helper_name *h) {
    struct process_look look;
    return is_of_here(h) && process_look(h->pid, &look) == 0 && look.start_ticks == h->start &&
           executes(h->pid);
}

/* ---- what was left ---- */

static bool name_of(pid_t pid, struct helper_name *ret) {
    char path[64];
    BUF_FINI struct buf env = {0};
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRONMENT_MAX, &env, NULL) != 0)
        return false;
    for (const char *at = buf_str(&env), *end = at + env.len; at < end; at += strlen(at) + 1)
        if (str_starts(at, NAME "="))
            return read_name(at + strlen(NAME "="), ret);
    return false;
}

static void mend_socket(void *arg, pid_t pid, int fd, uint64_t inode) {
    FILE_CLOSE int copy = socket_take(*(const int *)arg, fd);
    if (copy >= 0)
        socket_mend(copy);
}

static int end_process(pid_t pid, const struct helper_name *h, struct err *err) {
    struct process p;
    struct helper_name again;
    int r = process_open(pid, &p, err);
    if (r)
        return r == -ESRCH ? 0 : r;
    if (name_of(pid, &again) && again.pid == h->pid && again.start == h->start) {
        sockets_held(pid, mend_socket, &p.pidfd);
        r = process_signal(&p, SIGKILL);
        r = r ? r : process_wait_end(&p, END_WAIT_NS);
    }
    process_close(&p);
    return r && r != -ESRCH ? err_set(err, r, "end process %d", (int)pid) : 0;
}

static void look_at(pid_t pid, bool clean, struct json_writer *w) {
    struct helper_name h;
    struct err err;
    char name[32];
    if (pid == getpid() || !name_of(pid, &h) || !is_of_here(&h) || lives(&h))
        return;
    json_object(w, NULL);
    json_put_string(w, "run", h.run);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "name", process_name(pid, name, sizeof(name)));
    json_put_string(w, "error", clean && end_process(pid, &h, &err) != 0 ? err.msg : NULL);
    json_end_object(w);
}

static void put_left(bool clean, struct json_writer *w) {
    pid_t *pids;
    size_t n = process_list(&pids);
    json_array(w, "left");
    for (size_t i = 0; i < n; i++)
        look_at(pids[i], clean, w);
    json_end_array(w);
    free(pids);
}

bool host_left_has_gone(const char *owner, int *ret_pid) {
    struct helper_name h;
    if (sscanf(owner, "%llu.%d.%llu", &h.space, &h.pid, &h.start) != 3 || !is_of_here(&h))
        return false;
    *ret_pid = h.pid;
    return !lives(&h);
}

static void put_pages(bool clean, struct json_writer *w) {
    TEXTS_FINI struct texts owners = {0};
    host_clock_owners(&owners);
    json_array(w, "pages");
    for (size_t i = 0; i < owners.n; i++) {
        int pid;
        if (!host_left_has_gone(owners.v[i], &pid))
            continue;
        bool stays = clean && host_clock_clear(owners.v[i]) != 0;
        json_object(w, NULL);
        json_put_i64(w, "pid", pid);
        json_put_string(w, "error", stays ? "the page of a clock cannot be removed" : NULL);
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- who is at work ---- */

static int halt(const struct helper_name *h, struct err *err) {
    struct process p;
    int r = process_open(h->pid, &p, err);
    if (r)
        return r == -ESRCH ? 0 : r;
    if (lives(h)) {
        r = process_signal(&p, SIGTERM);
        r = r ? r : process_wait_end(&p, HALT_WAIT_NS);
    }
    process_close(&p);
    return r && r != -ESRCH ? err_set(err, r, "have helper %d end", h->pid) : 0;
}

static void put_helper(const struct helper_name *h, bool ends, struct json_writer *w) {
    struct err err;
    json_object(w, NULL);
    json_put_string(w, "run", h->run);
    json_put_i64(w, "pid", h->pid);
    json_put_string(w, "error", ends && halt(h, &err) != 0 ? err.msg : NULL);
    json_end_object(w);
}

/* run: of which; "": of any. */
static void put_at_work(const char *run, bool ends, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf log = {0};
    size_t n;
    json_array(w, "at_work");
    host_record_read(&log);
    char **lines = str_split(&a, buf_str(&log), '\n', &n);
    for (size_t i = 0; i < n; i++) {
        const struct json *line = json_parse(&a, lines[i], strlen(lines[i]), NULL);
        struct helper_name h;
        if (str_eq(json_get_string(line, "act", ""), "begin") &&
            read_name(json_get_string(line, "about", ""), &h) && h.pid != getpid() && lives(&h) &&
            (!*run || str_eq(h.run, run)))
            put_helper(&h, ends, w);
    }
    json_end_array(w);
}

void host_left_answer(const struct json *order, struct json_writer *w) {
    const char *what = json_get_string(order, "do", "look");
    put_at_work(json_get_string(order, "run", ""), str_eq(what, "halt"), w);
    put_left(str_eq(what, "clean"), w);
    put_pages(str_eq(what, "clean"), w);
}
