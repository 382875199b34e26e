#include "agent/legacy/document.h"

#include "base/json.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char MARKS[] = "rankrun", NODES[] = "rankrun_nodes", HOSTS[] = "rankrun_hosts",
                  END[] = "rankrun_end";

static enum document_status status_of(const char *s) {
    static const char *const names[] = {"setup", "joinable", "frozen", "final", "closed"};
    for (int i = 0; i < 5; i++)
        if (str_eq(s, names[i]))
            return (enum document_status)(DOCUMENT_SETUP + i);
    return DOCUMENT_STRANGE;
}

/* The version is a string; of the other parts only what a status has is asked for. */
static enum document_status read_parts(struct document *d) {
    enum document_status status = status_of(json_get_string(d->top, "status", ""));
    const struct json *people = json_get(d->top, "participants");
    const struct json *alive = json_get(d->top, "keep_alives");
    bool has_version =
        str_to_i64(json_get_string(d->top, "version", ""), 1, INT64_MAX, &d->version);
    if (status == DOCUMENT_SETUP || status == DOCUMENT_CLOSED || status == DOCUMENT_STRANGE)
        return status;
    if (!has_version || !people || people->type != JSON_ARRAY || people->length > 100000)
        return DOCUMENT_STRANGE;
    d->n = (int)people->length;
    if (status == DOCUMENT_JOINABLE)
        return status;
    if (!alive || alive->type != JSON_ARRAY || alive->length > people->length)
        return DOCUMENT_STRANGE;
    d->confirmed = (int)alive->length;
    d->waiting = (int)json_get_i64(d->top, "num_workers_waiting", 0);
    return status;
}

void document_read(struct document *d, const char *text, int64_t modified) {
    struct err err;
    arena_fini(&d->arena);
    *d = (struct document){.text = ""};
    if (!text)
        return;
    d->text = arena_strdup(&d->arena, text);
    d->modified = modified;
    d->top = json_parse(&d->arena, d->text, strlen(d->text), &err);
    d->status = d->top ? read_parts(d) : DOCUMENT_STRANGE;
}

void document_fini(struct document *d) {
    arena_fini(&d->arena);
    *d = (struct document){.text = ""};
}

/* ---- writing ---- */

static bool replaced(const struct document_edit *e, const char *key) {
    return (e->status && str_eq(key, "status")) ||
           (e->add_rank >= 0 &&
            (str_eq(key, "participants") || str_eq(key, MARKS) || (e->node && str_eq(key, NODES)) ||
             (e->host && str_eq(key, HOSTS)))) ||
           ((e->begin_keep_alives || e->add_keep_alive) && str_eq(key, "keep_alives")) ||
           (e->waiting >= 0 && str_eq(key, "num_workers_waiting")) || (e->end && str_eq(key, END));
}

static void write_mark(struct json_writer *w, const struct document *d, const char *key, int rank,
                       const char *text) {
    char name[16];
    snprintf(name, sizeof(name), "%d", rank);
    json_object(w, key);
    json_each(m, json_get(d->top, key)) json_put_tree(w, m->key, m);
    json_put_string(w, name, text);
    json_end_object(w);
}

static void write_participants(struct json_writer *w, const struct document *d,
                               const struct document_edit *e) {
    json_array(w, "participants");
    json_each(p, json_get(d->top, "participants")) json_put_tree(w, NULL, p);
    json_put_i64(w, NULL, e->add_rank);
    json_end_array(w);
    write_mark(w, d, MARKS, e->add_rank, e->uid);
    if (e->node)
        write_mark(w, d, NODES, e->add_rank, e->node);
    if (e->host)
        write_mark(w, d, HOSTS, e->add_rank, e->host);
}

static void write_keep_alives(struct json_writer *w, const struct document *d,
                              const struct document_edit *e) {
    json_array(w, "keep_alives");
    json_each(k, json_get(d->top, "keep_alives")) json_put_tree(w, NULL, k);
    if (e->add_keep_alive)
        json_put_string(w, NULL, e->add_keep_alive);
    json_end_array(w);
}

void document_write(const struct document *d, const struct document_edit *e, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    if (e->status)
        json_put_string(&w, "status", e->status);
    json_each(m, d->top) if (!replaced(e, m->key)) json_put_tree(&w, m->key, m);
    if (e->add_rank >= 0)
        write_participants(&w, d, e);
    if (e->begin_keep_alives || e->add_keep_alive)
        write_keep_alives(&w, d, e);
    if (e->waiting >= 0)
        json_put_i64(&w, "num_workers_waiting", e->waiting);
    if (e->end)
        json_put_string(&w, END, e->end);
    json_end_object(&w);
}

/* ---- asking ---- */

int document_rank(const struct document *d, const char *uid) {
    int64_t rank;
    json_each(m,
              json_get(d->top, MARKS)) if (str_eq(json_string(m, ""), uid) &&
                                           str_to_i64(m->key, 0, d->n - 1, &rank)) return (int)rank;
    return -1;
}

static const char *mark_of(const struct document *d, const char *key, int rank) {
    char name[16];
    snprintf(name, sizeof(name), "%d", rank);
    return json_get_string(json_get(d->top, key), name, "");
}

const char *document_node(const struct document *d, int rank) {
    return mark_of(d, NODES, rank);
}

const char *document_host(const struct document *d, int rank) {
    return mark_of(d, HOSTS, rank);
}

bool document_any_keep_alive(const struct document *d, bool (*fn)(void *arg, const char *key),
                             void *arg) {
    json_each(k, json_get(d->top, "keep_alives")) if (fn(arg, json_string(k, ""))) return true;
    return false;
}

static bool is_key(void *arg, const char *key) {
    return str_eq(key, arg);
}

bool document_has_keep_alive(const struct document *d, const char *key) {
    return document_any_keep_alive(d, is_key, (void *)(uintptr_t)key);
}

bool document_is_pure(const struct document *d) {
    for (int i = 0; i < d->n; i++) {
        char rank[16];
        snprintf(rank, sizeof(rank), "%d", i);
        if (!json_get(json_get(d->top, MARKS), rank))
            return false;
    }
    return d->n > 0;
}

const char *document_end(const struct document *d) {
    return json_get_string(d->top, END, NULL);
}
