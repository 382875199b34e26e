/* What is written down of nodes that hang, with processes, folders and a store that are played: what there is of each
 * node, who takes too long and what cannot be written are drawn; each call and each file is on record. */
#include "tests/played.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "base/sys/signals.h"
#include "harness/carrier/host_process.h"
#include "harness/carrier/process_dump.h"
#include "harness/observe/hang_dump.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static struct {
    int64_t now_ns;
    bool shared;
    int forked;
    bool is_child;
    jmp_buf out;
} world;

static int64_t played_now(void) {
    return world.now_ns += draw(100);
}

/* ---- folders ---- */

static int played_make(const struct folder *f, const char *name, mode_t mode, struct err *err) {
    return fails("make %s %o", name, (unsigned)mode) ? err_set(err, -errno, "make %s", name) : 0;
}

static int played_enter(struct folder *ret, const struct folder *f, const char *name,
                        struct err *err) {
    *ret = FOLDER_NONE;
    if (fails("enter %s", name))
        return -errno;
    ret->fd = played_open();
    return 0;
}

static void played_leave(struct folder *f) {
    note("leave %d", f->fd);
    played_shut(f->fd);
}

static int played_write(const struct folder *f, const char *name, const void *data, size_t len,
                        struct err *err) {
    assert_true(played.open[f->fd]);
    note("write %s: %.*s.", name, (int)len, (const char *)data);
    return 0;
}

static int played_read_last(const struct folder *f, const char *name, int lines, size_t max,
                            struct buf *out, struct err *err) {
    if (fails("the last of %s: %d, %zu", name, lines, max) || draw(4) == 0)
        return -ENODATA;
    buf_printf(out, "end of %s\n", name);
    return 0;
}

static int played_list(const struct folder *f, const char *name,
                       int (*wanted)(const struct dirent *d), struct texts *ret, struct err *err) {
    static const char *const all[] = {"rank-0.log", "rank-11.log", "rank-1.txt",
                                      "agent.log",  "frank-1.log", ".rank-2.log"};
    note("list %s", name);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct dirent d = {0};
        snprintf(d.d_name, sizeof(d.d_name), "%s", all[i]);
        if (wanted(&d))
            texts_add(ret, "%s", all[i]);
    }
    return 0;
}

/* ---- processes ---- */

static ssize_t played_readlink(const char *path, char *ret, size_t size) {
    int pid = 0;
    assert_int_equal(sscanf(path, "/proc/%d/ns/pid", &pid), 1);
    if (fails("read %s, %zu", path, size))
        return -1;
    return snprintf(ret, size, "pid:[%d]", pid % 2);
}

static bool played_shared(pid_t pid, const char *kind) {
    note("is %s of %d shared", kind, (int)pid);
    return world.shared;
}

static size_t list_pids(pid_t **ret, int from) {
    size_t n = (size_t)draw(4);
    *ret = mem_array(pid_t, n + 1);
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = from + (pid_t)i;
    return n;
}

static size_t played_descendants(pid_t root, pid_t **ret) {
    note("all below %d", (int)root);
    return list_pids(ret, 100);
}

static size_t played_all(pid_t **ret) {
    note("all");
    return list_pids(ret, 101);
}

static const char *played_name(pid_t pid, char *ret, size_t size) {
    snprintf(ret, size, "a/b c\t%d", (int)pid);
    return ret;
}

static void played_dump(pid_t pid, struct buf *out) {
    buf_printf(out, "all of %d\n", (int)pid);
}

static int played_process_open(pid_t pid, struct process *ret, struct err *err) {
    if (fails("open %d", (int)pid))
        return -errno;
    *ret = (struct process){pid, played_open()};
    return 0;
}

static void played_process_close(struct process *p) {
    note("close %d", p->pidfd);
    if (p->pidfd >= 0)
        played_shut(p->pidfd);
    *p = PROCESS_NONE;
}

static int played_reap(const struct process *p, int64_t timeout_ns, int *status) {
    int code = draw(3) ? 0 : draw(2) ? -ETIME : -ECHILD;
    note("reap %d within %lld: %d", (int)p->pid, (long long)timeout_ns, code);
    return code;
}

static int played_signal(const struct process *p, int signo) {
    note("signal %d with %d", (int)p->pid, signo);
    return 0;
}

static pid_t played_fork(void) {
    if (world.is_child)
        return 0;
    return fails("fork") ? -1 : 900 + world.forked++;
}

static void played_die(void) {
    note("die with the parent");
}

static void played_reset(void) {
    note("signals as ever");
}

/* 98 and 101 are of another host, and have other numbers there. */
static bool played_is_far(pid_t pid) {
    return pid == 98 || pid == 101;
}

static pid_t played_far_pid(pid_t pid) {
    return pid + 5000;
}

static int played_setns(int fd, int what) {
    assert_true(played.open[fd]);
    return fails("enter %x", (unsigned)what) ? -1 : 0;
}

static _Noreturn void played_exit(int code) {
    note("exit %d", code);
    longjmp(world.out, 1);
}

static int played_putenv(char *text) {
    note("set %s", text);
    return 0;
}

static void played_store(const char *address, uint16_t port, struct buf *out) {
    buf_printf(out, "the keys of %s:%d\n", address, port);
}

#define folder_make               played_make
#define folder_enter              played_enter
#define folder_close              played_leave
#define folder_write              played_write
#define folder_read_last          played_read_last
#define folder_list               played_list
#define readlink                  played_readlink
#define namespace_is_shared       played_shared
#define process_list_descendants  played_descendants
#define process_list(ret)         played_all(ret)
#define process_name              played_name
#define process_dump              played_dump
#define process_open              played_process_open
#define process_close             played_process_close
#define process_reap              played_reap
#define process_signal            played_signal
#define namespace_die_with_parent played_die
#define signal_reset              played_reset
#define host_process_is           played_is_far
#define host_process_pid          played_far_pid
#define fork                      played_fork
#define setns                     played_setns
#define _exit                     played_exit
#define putenv                    played_putenv
#define hang_dump_store           played_store
#define clock_monotonic_ns        played_now
#include "harness/observe/hang_dump.c"
#undef fork
#undef _exit

/* ---- plays ---- */

static struct history history;
static struct rounds rounds;

static void begin_rounds(void) {
    static const struct {
        enum source source;
        const char *kind, *fields;
        pid_t pid;
    } rows[] = {{SOURCE_PROBE, "worker-start", "{\"RANK\":\"3\",\"WORLD_SIZE\":\"4\"}", 101},
                {SOURCE_PROBE, "worker-start", "{\"RANK\":\"1\",\"WORLD_SIZE\":\"4\"}", 102},
                {SOURCE_KERNEL, "worker-exit", NULL, 102}};
    assert_int_equal(history_create(&history, NULL, NULL), 0);
    rounds_init(&rounds, true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ARENA_FINI struct arena a = {0};
        struct json_writer *w =
            history_begin(&history, 10 + (int64_t)i, rows[i].source, rows[i].kind);
        json_put_string(w, "node", "n0");
        json_put_i64(w, "pid", rows[i].pid);
        if (rows[i].fields)
            json_put_tree(w, "env", json_parse(&a, rows[i].fields, strlen(rows[i].fields), NULL));
        else
            json_put_i64(w, "code", 0);
        rounds_feed(&rounds, history_end(&history));
    }
}

static void dump(uint64_t seed) {
    struct folder run = FOLDER_NONE;
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.shared = draw(2);
    begin_rounds();
    struct hang_dump_node nodes[3];
    for (int i = 0; i < 3; i++)
        nodes[i] = (struct hang_dump_node){.name = i ? "n1" : "n0",
                                           .first = 99 + draw(4),
                                           .far = draw(3) == 0,
                                           .log = draw(4) ? "logs/n0/agent.log" : "agent.log",
                                           .store = draw(3) ? "10.0.0.1" : NULL,
                                           .store_port = 2379,
                                           .token = draw(2) ? "TOKEN=x" : NULL};
    int code = hang_dump_make(&run, nodes, (size_t)draw(4), &rounds, draw(800), &err);
    note("made: %d %s", code, err.msg);
    for (int i = 0; i < 3; i++) { /* what the child of each does */
        struct process child;
        world.is_child = true;
        if (setjmp(world.out) == 0)
            begin(&run, &nodes[i], &rounds, &child);
        world.is_child = false;
        played.open[0] = false; /* its folder went with it */
        BUF_FINI struct buf text = {0};
        buf_puts(&text, draw(2) ? "told\n" : "");
        hang_dump_put(&run, "n2", 100 + i, "py thon/x", &text, &rounds);
    }
    history_fini(&history);
    rounds_fini(&rounds);
}

static const struct play plays[] = {
    {"tests/harness/observe/record/hang_dump.txt", dump, 60, true, {ESRCH, EACCES}}};

static void test_what_is_written_down_of_a_hang_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_down_of_a_hang_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
