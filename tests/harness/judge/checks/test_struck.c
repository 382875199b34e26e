/* Struck: what each check says of its planted cases when a fault of them has done something else, or to somebody else,
 * is what it said before: each effect alone, besides those that it has, and taken from them; each kind of target, each
 * node, and where that serves the store. What is drawn hangs on the name of the case. */
#include "tests/harness/judge/checks/each_case.h"
#include "tests/harness/judge/checks/opened_case.h"

#include "faults/effect.h"

enum { EFFECTS_ASKED = 3 };

static const char in_force[] = "\"kind\":\"fault-in-force\"", effects_key[] = "\"effects\":[",
                  kind_key[] = "\"kind\":", what_key[] = "\"what\":\"", node_key[] = "\"node\":\"";

/* A case of which the line at `at` tells of a fault. */
struct struck_case {
    struct opened_case opened;
    size_t at;
    struct rand rand;
    struct case_alterations *ret;
    struct buf *told;
};

/* ---- judging ---- */

static void note(struct struck_case *c, const char *line, bool serves, const struct finding *f) {
    struct buf said = {0};
    buf_printf(&said, "%zu%s %s\n", c->at + 1, serves ? ", which serves the store" : "", line);
    verdicts_put(&said, f);
    c->ret->asked++;
    c->ret->otherwise += f->status != c->opened.is.status;
    c->ret->sum = verdicts_sum(c->ret->sum, buf_str(&said));
    if (c->told)
        buf_puts(c->told, buf_str(&said));
    buf_fini(&said);
}

/* Half of it where the node that is named first serves the store. */
static void ask(struct struck_case *c, const char *line) {
    ARENA_FINI struct arena a = {0};
    struct scenario s = c->opened.scenario;
    struct finding f;
    const char *node = strstr(line, node_key);
    bool serves = node && rand_below(&c->rand, 2);
    if (serves) {
        node += strlen(node_key);
        s.cluster.store_on = arena_strndup(&a, node, strcspn(node, "\""));
    }
    if (opened_case_ask_instead(&c->opened, &s, c->at, line, &f))
        note(c, line, serves, &f);
}

/* ---- what it has done ---- */

static const char *with(struct arena *a, const char *line, const char *at, size_t len,
                        const char *text) {
    return arena_printf(a, "%.*s%s%s", (int)(at - line), line, text, at + len);
}

/* The line with these effects in place of those that it names, or that its fault has. */
static const char *with_effects(struct arena *a, const char *line, unsigned effects) {
    BUF_FINI struct buf list = {0};
    struct json_writer w = {.out = &list};
    const char *at = strstr(line, effects_key);
    json_object(&w, NULL);
    effects_put(&w, "effects", effects);
    json_end_object(&w);
    const char *is = arena_strndup(a, buf_str(&list) + 1, list.len - 2); /* without braces */
    if (at)
        return with(a, line, at, strcspn(at, "]") + 1, is);
    return with(a, line, strstr(line, kind_key), 0, arena_printf(a, "%s,", is));
}

static unsigned effects_of(const struct record *r) {
    const struct json *said = record_get(r, "effects");
    return said ? effects_take(said) : fault_effects(record_text(r, "fault"));
}

static void try_effects(struct struck_case *c, const char *line, unsigned has) {
    struct arena *a = &c->opened.arena;
    ask(c, with_effects(a, line, 0));
    for (unsigned k = 0; k < EFFECTS_N; k++) {
        ask(c, with_effects(a, line, 1U << k));
        ask(c, with_effects(a, line, has ^ 1U << k));
    }
}

/* ---- to whom ---- */

/* The first target is of another kind, by effects that strike workers, agents, nodes and stores. */
static void try_targets(struct struck_case *c, const char *line, unsigned has) {
    static const char *const kinds[] = {"worker", "agent", "node", "store", "link"};
    static const unsigned effects[] = {
        EFFECT_ENDS_AGENT,    EFFECT_ENDS_NODE,    EFFECT_ENDS_STORE,
        EFFECT_HINDERS_STORE, EFFECT_STALLS_NODE,  EFFECT_SILENCES_NODE,
        EFFECT_PARTS_NETWORK, EFFECT_STOPS_WORKER, EFFECT_ASKS_TO_LEAVE};
    struct arena *a = &c->opened.arena;
    const char *what = strstr(line, what_key);
    for (size_t i = 0; what && i < sizeof(kinds) / sizeof(*kinds); i++) {
        const char *at = what + strlen(what_key),
                   *is = with(a, line, at, strcspn(at, "\""), kinds[i]);
        ask(c, is);
        for (size_t k = 0; k < EFFECTS_ASKED; k++)
            ask(c, with_effects(
                       a, is,
                       (k ? 0 : has) |
                           effects[rand_below(&c->rand, sizeof(effects) / sizeof(*effects))]));
    }
}

static void try_nodes(struct struck_case *c, const char *line) {
    static const char *const nodes[] = {"n0", "n1", "n2", ""};
    const char *node = strstr(line, "\"targets\":");
    node = node ? strstr(node, node_key) : NULL;
    for (size_t i = 0; node && i < sizeof(nodes) / sizeof(*nodes); i++) {
        const char *at = node + strlen(node_key);
        ask(c, with(&c->opened.arena, line, at, strcspn(at, "\""), nodes[i]));
    }
}

/* ---- */

static void strike(struct case_alterations *ret, const struct planted_case *of, struct buf *told) {
    struct struck_case c = {.rand = opened_case_rand(of, 41), .ret = ret, .told = told};
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    opened_case_open(&c.opened, of);
    for (c.at = 0; c.at < c.opened.whole.n; c.at++) {
        const char *line = c.opened.lines[c.at];
        const struct record *r = c.opened.whole.records[c.at];
        if (!strstr(line, in_force))
            continue;
        try_effects(&c, line, effects_of(r));
        try_targets(&c, line, effects_of(r));
        try_nodes(&c, line);
    }
    opened_case_close(&c.opened);
}

static void test_what_is_said_where_another_is_struck_is_the_same_as_before(void **state) {
    (void)state;
    each_case_compare(strike, "struck", 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_said_where_another_is_struck_is_the_same_as_before);
    return each_case_main(argc, argv, strike, &test);
}
