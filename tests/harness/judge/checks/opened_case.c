#include "tests/harness/judge/checks/opened_case.h"

#include "harness/history/history_parse.h"
#include "harness/judge/checks/lost.h"
#include "harness/judge/views.h"
#include "tests/harness/judge/checks/cases_judge.h"

void opened_case_ask(const struct opened_case *c, const struct scenario *s, const struct history *h,
                     struct finding *ret) {
    struct views *views = views_new(s, h);
    struct lost lost;
    lost_find(&lost, h, views_rounds(views, VIEWS_OF_ROUNDS));
    views_ask(views, c->check, &lost, ret);
    views_free(views);
}

bool opened_case_parse(struct history *ret, const char *lines) {
    *ret = (struct history){0};
    for (const char *line = lines; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (history_parse(ret, line, strcspn(line, "\n"), true, NULL) < 0)
            return false;
        ret->records[ret->n - 1]->seq = 0;
    }
    return true;
}

static void put(struct history *ret, struct arena *a, struct record *const *from, size_t n) {
    for (size_t k = 0; k < n; k++) {
        struct record *r = from[k];
        if (r->seq != (int64_t)ret->n + 1) {
            r = arena_new(a, struct record);
            *r = *from[k];
            r->seq = (int64_t)ret->n + 1;
        }
        ret->records[ret->n++] = r;
    }
}

void opened_case_put_together(struct history *ret, struct arena *a, const struct opened_case *c,
                              const struct history *const *instead) {
    size_t most = c->whole.n + 1;
    for (size_t i = 0; i < c->whole.n; i++)
        most += instead[i] ? instead[i]->n : 0;
    *ret = (struct history){.records = arena_array(a, struct record *, most)};
    for (size_t i = 0; i < c->whole.n; i++)
        if (instead[i])
            put(ret, a, instead[i]->records, instead[i]->n);
        else
            put(ret, a, &c->whole.records[i], 1);
}

bool opened_case_ask_instead(const struct opened_case *c, const struct scenario *s, size_t at,
                             const char *instead, struct finding *ret) {
    ARENA_FINI struct arena a = {0};
    struct history other = {0}, h;
    bool can_be_read = !instead || opened_case_parse(&other, instead);
    if (can_be_read) {
        const struct history **of = arena_array(&a, const struct history *, c->whole.n);
        of[at] = &other;
        opened_case_put_together(&h, &a, c, of);
        opened_case_ask(c, s, &h, ret);
    }
    history_fini(&other);
    return can_be_read;
}

bool opened_case_is_planted(const struct opened_case *c, size_t at) {
    const char *of = strchr(c->lines[at], ','), *found = buf_str(&c->history);
    size_t n = strlen(of);
    while ((found = strstr(found, of)) && found[n] != '\n')
        found++;
    return !found;
}

bool opened_case_proves(const struct opened_case *c, size_t at) {
    for (size_t i = 0; c->is.evidence[i]; i++)
        if (c->is.evidence[i] == (int64_t)at + 1)
            return true;
    return false;
}

struct rand opened_case_rand(const struct planted_case *c, uint64_t seed) {
    struct rand r;
    for (const char *at = c->name; *at; at++)
        seed = seed * 31 + (unsigned char)*at;
    rand_init(&r, seed);
    return r;
}

void opened_case_open(struct opened_case *c, const struct planted_case *of) {
    struct buf text = {0};
    *c = (struct opened_case){.of = of};
    planted_load(&c->whole, of->history, of->edits);
    planted_text(&text, of->history, of->edits);
    read_text(&c->history, of->history);
    c->lines = str_split(&c->arena, arena_strdup(&c->arena, buf_str(&text)), '\n', NULL);
    c->scenario = cases_scenario(of->history, of->dialect);
    c->check = check_find(of->check);
    opened_case_ask(c, &c->scenario, &c->whole, &c->is);
    buf_fini(&text);
}

void opened_case_close(struct opened_case *c) {
    buf_fini(&c->history);
    history_fini(&c->whole);
    arena_fini(&c->arena);
}
