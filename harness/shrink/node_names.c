#include "harness/shrink/node_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The number of the node whose name begins here, -1: none does. *ret_end is where it ends. */
static int node_at(const char *text, const char *at, const char **ret_end) {
    if (*at != 'n' || !isdigit((unsigned char)at[1]) ||
        (at > text && (isalnum((unsigned char)at[-1]) || strchr("_-.", at[-1]))))
        return -1;
    char *end;
    long number = strtol(at + 1, &end, 10);
    if (isalnum((unsigned char)*end) || *end == '_' || number > 100000)
        return -1;
    *ret_end = end;
    return (int)number;
}

static bool text_names(const char *text, int node) {
    const char *end;
    for (const char *at = text; at && *at; at++)
        if (node_at(text, at, &end) == node)
            return true;
    return false;
}

static bool words_name(const char *const *v, int node) {
    for (; v && *v; v++)
        if (text_names(*v, node))
            return true;
    return false;
}

static bool pairs_name(const struct pair *v, size_t n, int node) {
    for (size_t i = 0; i < n; i++)
        if (text_names(v[i].value, node))
            return true;
    return false;
}

bool node_names_has(const struct scenario *s, int node) {
    bool named = text_names(s->cluster.store_on, node) || words_name(s->job.run, node) ||
                 words_name(s->job.launcher_args, node) || words_name(s->job.launcher_argv, node) ||
                 pairs_name(s->job.env, s->job.env_n, node);
    for (size_t i = 0; i < s->timeline_n; i++)
        named |= text_names(s->timeline[i].on.text, node) ||
                 pairs_name(s->timeline[i].with, s->timeline[i].with_n, node);
    for (size_t i = 0; i < s->probes_n; i++)
        named |= text_names(s->probes[i].on, node) || text_names(s->probes[i].url, node) ||
                 words_name(s->probes[i].cmd, node);
    for (size_t i = 0; i < s->expect.logs_n; i++)
        named |= text_names(s->expect.logs[i].on.text, node);
    return named;
}

/* Where every node comes to be; of other numbers nothing is known. */
struct moves {
    const int *to;
    int nodes;
};

static const char *rename_nodes(struct arena *a, const char *text, const struct moves *m) {
    BUF_FINI struct buf out = {0};
    const char *end;
    if (!text)
        return NULL;
    for (const char *at = text; *at;) {
        int node = node_at(text, at, &end);
        if (node >= 0 && node < m->nodes) {
            buf_printf(&out, "n%d", m->to[node]);
            at = end;
        } else {
            buf_putc(&out, *at++);
        }
    }
    text = arena_strdup(a, buf_str(&out));
    return text;
}

static const char *const *rename_words(struct arena *a, const char *const *v,
                                       const struct moves *m) {
    size_t n = 0;
    while (v && v[n])
        n++;
    const char **renamed = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        renamed[i] = rename_nodes(a, v[i], m);
    renamed[n] = NULL;
    return v ? renamed : NULL;
}

static const struct pair *rename_pairs(struct arena *a, const struct pair *v, size_t n,
                                       const struct moves *m) {
    struct pair *renamed = arena_array(a, struct pair, n + 1);
    for (size_t i = 0; i < n; i++) {
        renamed[i] = v[i];
        renamed[i].value = rename_nodes(a, v[i].value, m);
    }
    return renamed;
}

static void rename_probes(struct arena *a, struct scenario *c, const struct moves *m) {
    struct own_probe *v = arena_array(a, struct own_probe, c->probes_n + 1);
    for (size_t i = 0; i < c->probes_n; i++) {
        v[i] = c->probes[i];
        v[i].on = rename_nodes(a, v[i].on, m);
        v[i].url = rename_nodes(a, v[i].url, m);
        v[i].cmd = rename_words(a, v[i].cmd, m);
    }
    c->probes = v;
}

void node_names_move(struct arena *a, struct scenario *c, const int *to, int nodes) {
    const struct moves moves = {.to = to, .nodes = nodes}, *m = &moves;
    struct timeline_entry *v = arena_array(a, struct timeline_entry, c->timeline_n + 1);
    struct log_expect *logs = arena_array(a, struct log_expect, c->expect.logs_n + 1);
    for (size_t i = 0; i < c->timeline_n; i++) {
        v[i] = c->timeline[i];
        v[i].with = rename_pairs(a, v[i].with, v[i].with_n, m);
        v[i].on.text = rename_nodes(a, v[i].on.text, m);
    }
    for (size_t i = 0; i < c->expect.logs_n; i++) {
        logs[i] = c->expect.logs[i];
        logs[i].on.text = rename_nodes(a, logs[i].on.text, m);
    }
    c->timeline = v;
    c->expect.logs = logs;
    rename_probes(a, c, m);
    c->cluster.store_on = rename_nodes(a, c->cluster.store_on, m);
    c->job.run = rename_words(a, c->job.run, m);
    c->job.launcher_args = rename_words(a, c->job.launcher_args, m);
    c->job.launcher_argv = rename_words(a, c->job.launcher_argv, m);
    c->job.env = rename_pairs(a, c->job.env, c->job.env_n, m);
}
