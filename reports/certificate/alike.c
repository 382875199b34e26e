#include "reports/certificate/alike.h"

#include "base/mem.h"
#include "base/str.h"
#include "reports/escape.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of texts of which each host has another, so many are told. */
enum { MANY_GROUPS = 8 };

/* ---- taking in ---- */

void alike_add_host(struct alike *a, const char *name) {
    mem_push(a->hosts, a->hosts_n) = arena_strdup(&a->arena, name);
}

size_t alike_find_host(const struct alike *a, const char *name) {
    for (size_t i = 0; i < a->hosts_n; i++)
        if (str_eq(a->hosts[i], name))
            return i;
    return SIZE_MAX;
}

static const char *term_of(struct alike *a, const char *name) {
    for (size_t i = 0; i < a->terms_n; i++)
        if (str_eq(a->terms[i], name))
            return a->terms[i];
    mem_push(a->terms, a->terms_n) = arena_strdup(&a->arena, name);
    return a->terms[a->terms_n - 1];
}

static void add_value(struct alike *a, size_t host, const char *term, const struct json *j,
                      const char *text) {
    if (!*text)
        return;
    mem_push(a->v, a->n) = (struct alike_value){
        .term = term_of(a, term),
        .text = arena_strdup(&a->arena, text),
        .host = host,
        .is_number = j->type == JSON_INT,
        .number = j->type == JSON_INT ? j->integer : 0,
    };
}

static bool is_container(const struct json *j) {
    return j->type == JSON_ARRAY || j->type == JSON_OBJECT;
}

static const char *text_of(struct alike *a, const struct json *j) {
    switch (j->type) {
    case JSON_STRING:
        return j->string;
    case JSON_BOOL:
        return j->boolean ? "yes" : "no";
    case JSON_INT:
        return arena_printf(&a->arena, "%lld", (long long)j->integer);
    case JSON_DOUBLE:
        return arena_printf(&a->arena, "%g", j->number);
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return "";
}

/* A name that no other element has, and that is no serial number, which no other host has. */
static const char *label_of(struct alike *a, const struct json *list, const struct json *element,
                            size_t number) {
    const char *name = json_get_string(element, "name", json_get_string(element, "path", NULL));
    size_t same = 0;
    json_each(e, list) same +=
        str_eq(json_get_string(e, "name", json_get_string(e, "path", NULL)), name);
    if (name && same == 1 && !str_starts(name, "GPU-") && !str_starts(name, "MIG-"))
        return name;
    return arena_printf(&a->arena, "%zu", number);
}

/* Elements that are no containers stand in one line. */
static void add_array(struct alike *a, size_t host, const char *term, const struct json *j,
                      const char *const *left_out) {
    BUF_FINI struct buf line = {0};
    size_t number = 0;
    json_each(e, j) {
        if (is_container(e)) {
            const char *label = label_of(a, j, e, number++);
            alike_add(a, host, arena_printf(&a->arena, "%s %s", term, label), e, left_out);
        } else {
            buf_printf(&line, "%s%s", line.len ? ", " : "", text_of(a, e));
        }
    }
    add_value(a, host, term, j, json_first(j) ? buf_str(&line) : "none");
}

static void add_object(struct alike *a, size_t host, const char *term, const struct json *j,
                       const char *const *left_out) {
    json_each(m, j) if (!left_out || !str_in(m->key, left_out)) alike_add(
        a, host, *term ? arena_printf(&a->arena, "%s %s", term, m->key) : m->key, m, left_out);
}

void alike_add(struct alike *a, size_t host, const char *term, const struct json *j,
               const char *const *left_out) {
    if (!j)
        return;
    if (j->type == JSON_ARRAY)
        add_array(a, host, term, j, left_out);
    else if (j->type == JSON_OBJECT)
        add_object(a, host, term, j, left_out);
    else
        add_value(a, host, term, j, text_of(a, j));
}

/* ---- names of hosts ---- */

static size_t prefix_of(const char *name) {
    size_t n = strlen(name);
    while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    return n;
}

/* n9 and n10, n09 and n10; not n9 and n010. */
static bool follows(const char *one, const char *next) {
    size_t p = prefix_of(one), q = prefix_of(next);
    int64_t x, y;
    if (p != q || strncmp(one, next, p) != 0 || !str_to_i64(one + p, 0, INT32_MAX, &x) ||
        !str_to_i64(next + p, 0, INT32_MAX, &y) || y != x + 1)
        return false;
    return strlen(one) == strlen(next) || (one[p] != '0' && next[p] != '0');
}

/* has: of each host. "n0 to n60, n62"; "all 64" where they are. */
static void put_hosts(const struct alike *a, const bool *has, struct buf *out) {
    size_t n = 0;
    for (size_t i = 0; i < a->hosts_n; i++)
        n += has[i];
    if (n == a->hosts_n && n > 1) {
        escape_printf(out, "all %zu", n);
        return;
    }
    const char *comma = "";
    for (size_t i = 0; i < a->hosts_n; i++) {
        size_t last = i;
        if (!has[i])
            continue;
        while (last + 1 < a->hosts_n && has[last + 1] &&
               follows(a->hosts[last], a->hosts[last + 1]))
            last++;
        if (last < i + 2)
            last = i;
        escape_printf(out, "%s%s", comma, a->hosts[i]);
        if (last > i)
            escape_printf(out, " to %s", a->hosts[last]);
        i = last;
        comma = ", ";
    }
}

/* ---- rows ---- */

static void put_row(const char *term, const char *value, const struct alike *a, const bool *has,
                    struct buf *out) {
    escape_printf(out, "<tr><td>%s</td><td>%s</td><td>", term, value);
    put_hosts(a, has, out);
    buf_puts(out, "</td></tr>\n");
}

static int by_number(const void *a, const void *b) {
    int64_t x = (*(const struct alike_value *const *)a)->number,
            y = (*(const struct alike_value *const *)b)->number;
    return (x > y) - (x < y);
}

static const char *host_of(const struct alike *a, const struct alike_value *v) {
    return v->host < a->hosts_n ? a->hosts[v->host] : "no host";
}

static void put_spread(const struct alike *a, const struct alike_value **v, size_t n,
                       struct buf *out) {
    qsort(v, n, sizeof(*v), by_number);
    int64_t middle = n % 2 ? v[n / 2]->number : (v[n / 2 - 1]->number + v[n / 2]->number) / 2;
    escape_printf(out,
                  "<tr><td>%s</td><td>%s to %s, in the middle %lld</td><td>least on %s, most on "
                  "%s</td></tr>\n",
                  v[0]->term, v[0]->text, v[n - 1]->text, (long long)middle, host_of(a, v[0]),
                  host_of(a, v[n - 1]));
}

/* Whether an earlier one of them has the same text. */
static bool came_before(const struct alike_value **v, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(v[k]->text, v[i]->text))
            return true;
    return false;
}

static void put_groups(const struct alike *a, const struct alike_value **v, size_t n,
                       struct buf *out) {
    bool *has = mem_array(bool, a->hosts_n + 1), *any = mem_array(bool, a->hosts_n + 1);
    bool of_hosts = false;
    size_t told = 0;
    memset(any, 0, a->hosts_n + 1);
    for (size_t i = 0; i < n; i++)
        if (v[i]->host < a->hosts_n)
            any[v[i]->host] = of_hosts = true;
    for (size_t i = 0; i < n; i++) {
        if (came_before(v, i) || ++told > MANY_GROUPS)
            continue;
        memset(has, 0, a->hosts_n + 1);
        for (size_t k = i; k < n; k++)
            if (str_eq(v[k]->text, v[i]->text) && v[k]->host < a->hosts_n)
                has[v[k]->host] = true;
        put_row(v[i]->term, v[i]->text, a, has, out);
    }
    if (told > MANY_GROUPS)
        escape_printf(out, "<tr><td>%s</td><td>%zu others</td><td></td></tr>\n", v[0]->term,
                      told - MANY_GROUPS);
    bool lacking = false;
    for (size_t i = 0; i < a->hosts_n; i++) {
        has[i] = !any[i];
        lacking |= has[i];
    }
    if (of_hosts && lacking)
        put_row(v[0]->term, "\xe2\x80\x93", a, has, out);
    free(has);
    free(any);
}

static void put_term(const struct alike *a, const char *term, struct buf *out) {
    const struct alike_value **v = mem_array(const struct alike_value *, a->n + 1);
    size_t n = 0, groups = 0;
    bool numbers = true;
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].term == term) {
            numbers &= a->v[i].is_number;
            v[n++] = &a->v[i];
        }
    for (size_t i = 0; i < n; i++)
        groups += !came_before(v, i);
    if (numbers && groups > 2)
        put_spread(a, v, n, out);
    else
        put_groups(a, v, n, out);
    free(v);
}

void alike_put(const struct alike *a, struct buf *out) {
    for (size_t i = 0; i < a->terms_n; i++)
        put_term(a, a->terms[i], out);
}

void alike_fini(struct alike *a) {
    free(a->hosts);
    free(a->terms);
    free(a->v);
    arena_fini(&a->arena);
}
