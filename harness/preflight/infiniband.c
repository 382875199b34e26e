#include "harness/preflight/infiniband.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than these since the counters were set to 0, as ibqueryerrors counts them. */
enum { ERRORS_MOST = 10, SENTENCE_MAX = 240 };

/* ---- what there is ---- */

static const char *read_line(struct arena *a, const char *port, const char *file) {
    BUF_FINI struct buf text = {0};
    file_read(arena_printf(a, "%s/%s", port, file), 256, &text, NULL);
    return arena_strndup(a, buf_str(&text), strcspn(buf_str(&text), "\n"));
}

/* "4: ACTIVE" */
static const char *read_state(struct arena *a, const char *port, const char *file) {
    const char *line = read_line(a, port, file), *colon = strchr(line, ':');
    return colon ? colon + 1 + strspn(colon + 1, " ") : line;
}

static int64_t read_count(struct arena *a, const char *port, const char *file) {
    int64_t v = -1;
    str_to_i64(read_line(a, port, file), 0, INT64_MAX, &v);
    return v;
}

/* "200 Gb/sec (4X HDR)", "2.5 Gb/sec (1X SDR)" */
static int64_t read_rate(struct arena *a, const char *port) {
    char *end;
    const char *line = read_line(a, port, "rate");
    double gigabits = strtod(line, &end);
    return end != line ? (int64_t)(gigabits * 1000) : -1;
}

static void put_port(struct json_writer *w, const char *port, const char *name) {
    ARENA_FINI struct arena a = {0};
    json_object(w, NULL);
    json_put_string(w, "name", name);
    json_put_string(w, "layer", read_line(&a, port, "link_layer"));
    json_put_string(w, "state", read_state(&a, port, "state"));
    json_put_string(w, "physical", read_state(&a, port, "phys_state"));
    json_put_i64(w, "rate_mb_s", read_rate(&a, port));
    json_put_i64(w, "link_downed", read_count(&a, port, "counters/link_downed"));
    json_put_i64(w, "symbol_errors", read_count(&a, port, "counters/symbol_error"));
    json_end_object(w);
}

static int is_shown(const struct dirent *e) {
    return e->d_name[0] != '.';
}

/* Of a folder, in order; n below 0: there is none. To be freed by free_names. */
static int list(const char *path, struct dirent ***ret) {
    return scandir(path, ret, is_shown, versionsort);
}

static void free_names(struct dirent **v, int n) {
    for (int i = 0; i < n; i++)
        free(v[i]);
    if (n >= 0)
        free(v);
}

static void put_adapter(struct json_writer *w, const char *root, const char *adapter) {
    ARENA_FINI struct arena a = {0};
    struct dirent **ports;
    const char *path = arena_printf(&a, "%s/%s/ports", root, adapter);
    int n = list(path, &ports);
    for (int i = 0; i < n; i++)
        put_port(w, arena_printf(&a, "%s/%s", path, ports[i]->d_name),
                 arena_printf(&a, "%s/%s", adapter, ports[i]->d_name));
    free_names(ports, n);
}

void infiniband_put(const char *root, struct json_writer *w, const char *key) {
    struct dirent **adapters;
    int n = list(root, &adapters);
    json_array(w, key);
    for (int i = 0; i < n; i++)
        put_adapter(w, root, adapters[i]->d_name);
    json_end_array(w);
    free_names(adapters, n);
}

/* ---- what is wrong ---- */

struct telling_ports {
    void (*fn)(void *arg, const char *sentence);
    void *arg;
    int n;
};

static void say(struct telling_ports *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct telling_ports *t, const char *fmt, ...) {
    char text[SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    t->fn(t->arg, text);
    t->n++;
}

/* A port without a cable is down, and nobody's mistake. One with a link that is not active is. */
static void judge_port(struct telling_ports *t, const struct json *port) {
    const char *name = json_get_string(port, "name", "?"),
               *state = json_get_string(port, "state", "");
    int64_t downs = json_get_i64(port, "link_downed", -1),
            errors = json_get_i64(port, "symbol_errors", -1);
    if (str_eq(json_get_string(port, "physical", ""), "LinkUp") && !str_eq(state, "ACTIVE"))
        say(t, "port %s has a link and is %s: no subnet manager has made it active", name,
            *state ? state : "in no state");
    if (downs > ERRORS_MOST)
        say(t, "port %s has lost its link %lld times: look at its cable", name, (long long)downs);
    if (errors > ERRORS_MOST)
        say(t, "port %s has counted %lld symbol errors: look at its cable", name,
            (long long)errors);
}

int infiniband_judge(const struct json *ports, void (*fn)(void *arg, const char *sentence),
                     void *arg) {
    struct telling_ports t = {.fn = fn, .arg = arg};
    json_each(port, ports) judge_port(&t, port);
    return t.n;
}

const char *infiniband_rates(const struct json *ports, struct arena *a) {
    const char *text = "";
    json_each(port, ports) if (str_eq(json_get_string(port, "state", ""), "ACTIVE")) text =
        arena_printf(a, "%s%s%lld", text, *text ? ", " : "",
                     (long long)json_get_i64(port, "rate_mb_s", -1));
    return text;
}
