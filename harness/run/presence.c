#include "harness/run/presence.h"

#include "agent/base/json.h"
#include "agent/base/str.h"
#include "agent/sys/file.h"
#include "agent/sys/process.h"
#include "harness/run/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20 };

static void path_of(const char *dir, char ret[4300]) {
    snprintf(ret, 4300, "%s/presence.json", dir);
}

static void read_boot(char ret[64]) {
    struct buf text = {0};
    file_read("/proc/sys/kernel/random/boot_id", 4096, &text, NULL);
    snprintf(ret, 64, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
    buf_fini(&text);
}

static void read_space(char ret[64]) {
    ssize_t n = readlink("/proc/self/ns/pid", ret, 63);
    ret[n > 0 ? n : 0] = '\0';
}

int presence_find_run(const char *dir, struct err *err) {
    static const char *const signs[] = {"presence.json", "control/presence.json", "scenario.yaml"};
    char path[4400];
    struct stat st;
    if (stat(dir, &st) < 0)
        return err_set(err, -errno, "%s %s", errno == ENOENT ? "there is no run" : "look at", dir);
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, signs[i]);
        if (stat(path, &st) == 0)
            return 0;
        if (errno != ENOENT && errno != ENOTDIR)
            return err_set(err, -errno, "look into %s", dir);
    }
    return err_say(err, -ENOENT, "this is no run: %s", dir);
}

void presence_own(struct presence *ret, bool keep) {
    *ret = (struct presence){.keep = keep, .harness = {.name = "harness", .pid = getpid()}};
    read_boot(ret->boot);
    read_space(ret->space);
    process_start_ticks(ret->harness.pid, &ret->harness.start_ticks);
}

static void put_process(struct json_writer *w, const char *key, const struct presence_process *p) {
    json_object(w, key);
    json_put_string(w, "name", p->name);
    json_put_i64(w, "pid", p->pid);
    json_put_i64(w, "start_ticks", (int64_t)p->start_ticks);
    json_end_object(w);
}

int presence_write(const char *dir, const struct presence *p, struct err *err) {
    char path[4300], beside[4320];
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_i64(&w, "v", 1);
    json_put_string(&w, "boot", p->boot);
    json_put_string(&w, "space", p->space);
    json_put_bool(&w, "keep", p->keep);
    put_process(&w, "harness", &p->harness);
    json_array(&w, "nodes");
    for (size_t i = 0; i < p->nodes_n; i++)
        put_process(&w, NULL, &p->nodes[i]);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(&text, '\n');
    /* Nothing to be kept over a power cut, so nothing waits for the disk. */
    path_of(dir, path);
    snprintf(beside, sizeof(beside), "%s.tmp", path);
    int r = file_write(beside, text.data, text.len, err);
    buf_fini(&text);
    if (r == 0 && rename(beside, path) != 0)
        r = err_set(err, -errno, "rename %s", beside);
    if (r)
        unlink(beside);
    return r;
}

static struct presence_process process_of(struct arena *a, const struct json *j) {
    return (struct presence_process){
        .name = arena_strdup(a, json_get_string(j, "name", "")),
        .pid = (pid_t)json_get_i64(j, "pid", 0),
        .start_ticks = (uint64_t)json_get_i64(j, "start_ticks", 0),
    };
}

int presence_read(const char *dir, struct arena *a, struct presence *ret, struct err *err) {
    char path[4300];
    struct buf text = {0};
    path_of(dir, path);
    int r = file_read(path, FILE_MAX, &text, err);
    const struct json *j = r == 0 ? json_parse(a, buf_str(&text), text.len, err) : NULL;
    const struct json *nodes = json_get(j, "nodes");
    if (r == 0 && (!j || json_get_i64(j, "v", 0) != 1 || !json_get(j, "harness")))
        r = err_say(err, -EBADMSG, "%s is no note of a run: remove it by hand", path);
    if (r == 0) {
        *ret = (struct presence){.keep = json_get_bool(j, "keep", false),
                                 .harness = process_of(a, json_get(j, "harness"))};
        str_copy(ret->boot, sizeof(ret->boot), json_get_string(j, "boot", ""));
        str_copy(ret->space, sizeof(ret->space), json_get_string(j, "space", ""));
        ret->nodes = arena_array(a, struct presence_process, (nodes ? nodes->length : 0) + 1);
        json_each(it, nodes) ret->nodes[ret->nodes_n++] = process_of(a, it);
    }
    buf_fini(&text);
    return r;
}

void presence_remove(const char *dir) {
    char path[4300], beside[4320];
    path_of(dir, path);
    snprintf(beside, sizeof(beside), "%s.tmp", path);
    unlink(beside);
    unlink(path);
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
void presence_note(struct engine *e) {
    struct node **nodes;
    struct presence p;
    presence_own(&p, e->spec->keep);
    size_t n = e->cluster ? cluster_nodes(e->cluster, &nodes) : 0;
    struct presence_process *v = arena_array(&e->arena, struct presence_process, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct target first;
        node_target(nodes[i], &first);
        struct presence_process node = {.name = node_plan(nodes[i])->name, .pid = first.pid};
        if (first.pid && process_start_ticks(first.pid, &node.start_ticks) == 0)
            v[p.nodes_n++] = node;
    }
    p.nodes = v;
    presence_write(e->spec->dir, &p, NULL);
}

/* What could not be removed, or was meant to stay, is known by the file. */
void presence_end(struct engine *e) {
    if (!file_exists(arena_printf(&e->arena, "%s/scratch", e->spec->dir)))
        presence_remove(e->spec->dir);
}
