#include "harness/observe/devices.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/nvml.h"
#include "base/sys/outcall.h"
#include "base/sys/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_MAX = 4096 };

/* A driver that has not answered by then is given up. The first answer may take long: it begins to
 * drive devices that nobody has used. */
static const int64_t BEGIN_NS = 60000000000, LOOK_NS = 5000000000;

/* All that may hang in the driver is done by a child. */
struct devices {
    struct outcall outcall;
};

/* In the child: the driver, and the devices that are looked at. */
struct driver {
    struct nvml *nvml;
    struct err why;              /* when nvml is NULL */
    size_t at[NVML_DEVICES_MAX]; /* as the driver counts them */
    char uuids[NVML_DEVICES_MAX][96];
    size_t n;
};

/* The processes of the nodes, as one look finds them. */
struct devices_crowd {
    struct one {
        pid_t pid;
        const char *node;
        bool holds; /* has a file of the driver open */
    } * v;
    size_t n;
};

/* ---- who is there ---- */

static void crowd_take(struct devices_crowd *c, const struct json *nodes) {
    json_each(n, nodes) {
        pid_t *pids;
        size_t found = process_list_descendants((pid_t)json_get_i64(n, "first", 0), &pids);
        for (size_t k = 0; k < found && c->n < PROCESSES_MAX; k++)
            mem_push(c->v, c->n) = (struct one){pids[k], json_get_string(n, "name", ""),
                                                nvml_holds_driver(pids[k]) == 1};
        free(pids);
    }
}

static const struct one *crowd_find(const struct devices_crowd *c, pid_t pid) {
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].pid == pid)
            return &c->v[i];
    return NULL;
}

static bool exists(pid_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return file_exists(path);
}

/* ---- what is put down ---- */

/* A number of the driver's list is believed to be a process of a node only when that process has
 * the driver open; else it is the same number in another namespace. */
static bool put_process(struct json_writer *w, const struct devices_crowd *c,
                        const struct nvml_process *p) {
    const struct one *one = crowd_find(c, p->pid);
    if (one ? !one->holds : !exists(p->pid))
        return false;
    json_object(w, NULL);
    json_put_i64(w, "pid", p->pid);
    json_put_string(w, "node", one ? one->node : ""); /* "": not ours */
    json_put_i64(w, "bytes", p->bytes);
    json_end_object(w);
    return true;
}

static void put_processes(struct driver *d, size_t i, const struct devices_crowd *c,
                          struct json_writer *w, struct err *err) {
    struct nvml_process list[NVML_PROCESSES_MAX];
    size_t n = 0;
    int64_t hidden = 0;
    struct err why = {0};
    int r = nvml_processes(d->nvml, d->at[i], list, &n, &why);
    if (r == -ENOTSUP)
        hidden = 1; /* or more */
    else if (r)
        *err = why;
    json_array(w, "processes");
    for (size_t k = 0; k < n; k++)
        hidden += !put_process(w, c, &list[k]);
    json_end_array(w);
    json_put_i64(w, "hidden", hidden);
}

static void put_device(struct driver *d, size_t i, const struct devices_crowd *c,
                       struct json_writer *w, struct err *err) {
    int64_t used = -1;
    nvml_memory_used(d->nvml, d->at[i], &used, err);
    json_object(w, NULL);
    json_put_i64(w, "index", (int64_t)d->at[i]);
    json_put_string(w, "uuid", d->uuids[i]);
    json_put_i64(w, "used", used);
    put_processes(d, i, c, w, err);
    json_end_object(w);
}

static void put_holder(struct json_writer *w, const struct one *one) {
    char name[64];
    json_object(w, NULL);
    json_put_i64(w, "pid", one->pid);
    json_put_string(w, "node", one->node);
    json_put_string(w, "name", process_name(one->pid, name, sizeof(name)));
    json_end_object(w);
}

/* ---- in the child ---- */

static void *begin(void) {
    static struct driver d;
    d.nvml = nvml_open(&d.why);
    return &d;
}

/* {uuids:[..]}: those that are wanted from here on. */
static void choose(struct driver *d, const struct json *uuids) {
    struct nvml_device device;
    d->n = 0;
    for (size_t i = 0; i < nvml_count(d->nvml); i++) {
        bool wanted = false;
        if (nvml_device(d->nvml, i, &device, NULL) != 0)
            continue;
        json_each(u, uuids) wanted |= str_eq(json_string(u, ""), device.uuid);
        if (wanted) {
            str_copy(d->uuids[d->n], sizeof(d->uuids[0]), device.uuid);
            d->at[d->n++] = i;
        }
    }
}

/* {nodes:[{name, first}]}: look. */
static void look(struct driver *d, const struct json *nodes, struct json_writer *w) {
    struct devices_crowd c = {0};
    struct err err = {0};
    crowd_take(&c, nodes);
    json_array(w, "devices");
    for (size_t i = 0; i < d->n; i++)
        put_device(d, i, &c, w, &err);
    json_end_array(w);
    json_array(w, "open");
    for (size_t i = 0; i < c.n; i++)
        if (c.v[i].holds)
            put_holder(w, &c.v[i]);
    json_end_array(w);
    if (err.code)
        json_put_string(w, "error", err.msg);
    free(c.v);
}

static void answer(void *state, const char *question, struct buf *ret) {
    struct driver *d = state;
    ARENA_FINI struct arena a = {0};
    struct json_writer w = {.out = ret};
    const struct json *q = json_parse(&a, question, strlen(question), NULL);
    const struct json *uuids = json_get(q, "uuids");
    json_object(&w, NULL);
    if (!d->nvml) {
        json_put_i64(&w, "code", d->why.code);
        json_put_string(&w, "error", d->why.msg);
    } else if (uuids) {
        choose(d, uuids);
    } else {
        look(d, json_get(q, "nodes"), &w);
    }
    json_end_object(&w);
}

static const struct outcall_work work = {begin, answer};

/* ---- the caller ---- */

struct devices *devices_new(const char *const *uuids, size_t n, struct err *err) {
    struct devices *d = mem_new(struct devices);
    BUF_FINI struct buf question = {0}, said = {0};
    struct json_writer w = {.out = &question};
    ARENA_FINI struct arena a = {0};
    d->outcall = OUTCALL_NONE;
    json_object(&w, NULL);
    json_array(&w, "uuids");
    for (size_t i = 0; i < n; i++)
        json_put_string(&w, NULL, uuids[i]);
    json_end_array(&w);
    json_end_object(&w);
    int r = outcall_open(&d->outcall, &work, err);
    if (r == 0 && (r = outcall_ask(&d->outcall, buf_str(&question), BEGIN_NS, &said, err)) != 0)
        err_wrap(err, "NVIDIA's driver: ");
    const struct json *j = r == 0 ? json_parse(&a, buf_str(&said), said.len, err) : NULL;
    if (json_get(j, "error"))
        r = err_say(err, (int)json_get_i64(j, "code", -ENODEV), "%s",
                    json_get_string(j, "error", ""));
    return r == 0 ? d : devices_free(d);
}

struct devices *devices_free(struct devices *d) {
    if (d)
        outcall_close(&d->outcall);
    free(d);
    return NULL;
}

static void put_nodes(struct json_writer *w, const struct devices_node *nodes, size_t n) {
    json_object(w, NULL);
    json_array(w, "nodes");
    for (size_t i = 0; i < n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", nodes[i].name);
        json_put_i64(w, "first", nodes[i].first);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

void devices_put(struct devices *d, const struct devices_node *nodes, size_t n,
                 struct json_writer *w) {
    BUF_FINI struct buf question = {0}, said = {0};
    struct json_writer q = {.out = &question};
    ARENA_FINI struct arena a = {0};
    struct err err;
    put_nodes(&q, nodes, n);
    if (outcall_ask(&d->outcall, buf_str(&question), LOOK_NS, &said, &err) == 0) {
        const struct json *j = json_parse(&a, buf_str(&said), said.len, NULL);
        json_each(it, j) json_put_tree(w, it->key, it);
    } else {
        err_wrap(&err, "NVIDIA's driver: ");
        json_put_string(w, "error", err.msg);
    }
}
