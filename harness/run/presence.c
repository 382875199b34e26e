#include "harness/run/presence.h"

#include "base/json.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/run/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20 };

static const char file_name[] = "presence.json";

static void read_boot(char ret[64]) {
    BUF_FINI struct buf text = {0};
    file_read("/proc/sys/kernel/random/boot_id", 4096, &text, NULL);
    snprintf(ret, 64, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
}

static void read_space(char ret[64]) {
    ssize_t n = readlink("/proc/self/ns/pid", ret, 63);
    ret[n > 0 ? n : 0] = '\0';
}

int presence_find_run(struct folder *ret, const char *dir, struct err *err) {
    static const char *const signs[] = {"presence.json", "control/presence.json", "scenario.yaml"};
    struct folder run;
    int r = folder_open(&run, dir, err);
    if (r == -ENOENT)
        return err_set(err, r, "there is no run %s", dir);
    if (r == -ENOTDIR)
        return err_say(err, -ENOENT, "this is no run: %s", dir);
    if (r)
        return r;
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
        if (folder_has(&run, signs[i])) {
            *ret = run;
            return 0;
        }
    folder_close(&run);
    return err_say(err, -ENOENT, "this is no run: %s", dir);
}

void presence_own(struct presence *ret, bool keep) {
    *ret = (struct presence){.keep = keep, .harness = {.name = "harness", .pid = getpid()}};
    read_boot(ret->boot);
    read_space(ret->space);
    str_copy(ret->mark, sizeof(ret->mark), mark_own());
    process_start_ticks(ret->harness.pid, &ret->harness.start_ticks);
}

static void put_process(struct json_writer *w, const char *key, const struct presence_process *p) {
    json_object(w, key);
    json_put_string(w, "name", p->name);
    json_put_i64(w, "pid", p->pid);
    json_put_i64(w, "start_ticks", (int64_t)p->start_ticks);
    json_end_object(w);
}

int presence_write(const struct folder *run, const struct presence *p, struct err *err) {
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_i64(&w, "v", 1);
    json_put_string(&w, "boot", p->boot);
    json_put_string(&w, "space", p->space);
    json_put_string(&w, "mark", p->mark);
    json_put_bool(&w, "keep", p->keep);
    put_process(&w, "harness", &p->harness);
    json_array(&w, "nodes");
    for (size_t i = 0; i < p->nodes_n; i++)
        put_process(&w, NULL, &p->nodes[i]);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(&text, '\n');
    /* Nothing to be kept over a power cut, so nothing waits for the disk. */
    int r = folder_write(run, file_name, text.data, text.len, err);
    buf_fini(&text);
    return r;
}

static struct presence_process process_of(struct arena *a, const struct json *j) {
    return (struct presence_process){
        .name = arena_strdup(a, json_get_string(j, "name", "")),
        .pid = (pid_t)json_get_i64(j, "pid", 0),
        .start_ticks = (uint64_t)json_get_i64(j, "start_ticks", 0),
    };
}

int presence_read(const struct folder *run, struct arena *a, struct presence *ret,
                  struct err *err) {
    BUF_FINI struct buf text = {0};
    int r = folder_read(run, file_name, FILE_MAX, &text, err);
    const struct json *j = r == 0 ? json_parse(a, buf_str(&text), text.len, err) : NULL;
    const struct json *nodes = json_get(j, "nodes");
    if (r == 0 && (!j || json_get_i64(j, "v", 0) != 1 || !json_get(j, "harness")))
        r = err_say(err, -EBADMSG, "%s/%s is no note of a run: remove it by hand", run->path,
                    file_name);
    if (r == 0) {
        *ret = (struct presence){.keep = json_get_bool(j, "keep", false),
                                 .harness = process_of(a, json_get(j, "harness"))};
        str_copy(ret->boot, sizeof(ret->boot), json_get_string(j, "boot", ""));
        str_copy(ret->space, sizeof(ret->space), json_get_string(j, "space", ""));
        str_copy(ret->mark, sizeof(ret->mark), json_get_string(j, "mark", ""));
        ret->nodes = arena_array(a, struct presence_process, (nodes ? nodes->length : 0) + 1);
        json_each(it, nodes) ret->nodes[ret->nodes_n++] = process_of(a, it);
    }
    return r;
}

int presence_read_living(const struct folder *run, struct arena *a, struct presence *ret) {
    struct folder control = FOLDER_NONE;
    bool lives = presence_read(run, a, ret, NULL) == 0 && presence_state(ret) == PRESENCE_LIVE;
    if (!lives && folder_enter(&control, run, "control", NULL) == 0) {
        lives = presence_read(&control, a, ret, NULL) == 0 && presence_state(ret) == PRESENCE_LIVE;
        folder_close(&control);
    }
    return lives ? 0 : -ESRCH;
}

void presence_remove(const struct folder *run) {
    folder_unlink(run, file_name);
}

bool presence_lives(const struct presence *p, const struct presence_process *process) {
    char boot[64];
    uint64_t ticks;
    int status;
    read_boot(boot);
    return str_eq(boot, p->boot) && process->pid > 0 &&
           process_start_ticks(process->pid, &ticks) == 0 && ticks == process->start_ticks &&
           process_zombie_status(process->pid, &status) == -EAGAIN;
}

bool presence_is_harness(const struct presence *p) {
    return p->harness.pid > 0 && mark_harness(p->mark) == p->harness.pid;
}

bool presence_is_node(const struct presence *p, const struct presence_process *node) {
    return presence_lives(p, node) && mark_is_carried(p->mark, node->pid);
}

/* Of an earlier boot nothing can be left. */
bool presence_is_orphaned(const struct presence *p) {
    char boot[64];
    read_boot(boot);
    return str_eq(boot, p->boot) && presence_state(p) == PRESENCE_OVER && mark_is_orphaned(p->mark);
}

enum presence_state presence_state(const struct presence *p) {
    char boot[64], space[64];
    read_boot(boot);
    read_space(space);
    if (!str_eq(boot, p->boot))
        return PRESENCE_OVER;
    if (!str_eq(space, p->space))
        return PRESENCE_ELSEWHERE;
    return presence_lives(p, &p->harness) ? PRESENCE_LIVE : PRESENCE_OVER;
}

/* Best effort: a run does not fail because its directory cannot say that it goes on. */
static void note(struct engine *e) {
    struct presence p;
    presence_own(&p, e->spec->keep);
    p.nodes = arena_array(&e->arena, struct presence_process, e->plan->nodes_n);
    for (struct node **n = e->cluster ? cluster_nodes(e->cluster) : NULL; n && *n; n++) {
        struct target first;
        node_target(*n, &first);
        struct presence_process node = {.name = node_plan(*n)->name, .pid = first.pid};
        if (first.pid && process_start_ticks(first.pid, &node.start_ticks) == 0)
            p.nodes[p.nodes_n++] = node;
    }
    presence_write(e->spec->folder, &p, NULL);
}

static int open_presence(struct engine *e, struct err *err) {
    mark_begin();
    note(e);
    return 0;
}

static void record(struct engine *e, const struct record *r) {
    if (record_is(r, "node-up"))
        note(e);
}

/* What could not be removed, or was meant to stay, is known by the file. */
static void close_presence(struct engine *e) {
    if (!folder_has(e->spec->folder, "scratch"))
        presence_remove(e->spec->folder);
    mark_end();
}

const struct run_part run_part_presence = {
    .open = open_presence,
    .record = record,
    .close = close_presence,
};
