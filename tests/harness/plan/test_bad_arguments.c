/* What is written wrong of a fault: every fault of the table and every one of its parameters, with
 * values that cannot be meant. Each is refused by loader or plan, once, at its line and column, with a
 * sentence that names the key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/harness/plan/world.h"

/* ---- a scenario of many entries, each wrong in one place ---- */

enum { ROWS_MAX = 45, MARK = '@' }; /* before what is wrong; is not written */
_Static_assert((int)ROWS_MAX < (int)DIAGNOSTICS_SHOWN, "all that is said is read");

struct sheet {
    const char *world;
    struct buf text;
    struct row {
        int column;
        char entry[500], key[40];
    } rows[ROWS_MAX];
    int n, problems;
};

static void sheet_begin(struct sheet *s, const char *world) {
    s->world = world;
    s->n = 0;
    buf_clear(&s->text);
    buf_printf(&s->text, "%s%s", world, world_head);
    s->text.len -= WORLD_INDENT;
}

/* `entry` without its braces and trigger. */
static void sheet_add(struct sheet *s, const char *key, const char *entry) {
    struct row *r = &s->rows[s->n++];
    char whole[500];
    snprintf(whole, sizeof(whole), "{when: {time: 5s}, %s}", entry);
    const char *mark = strchr(whole, MARK);
    assert_non_null(mark);
    r->column = WORLD_INDENT + (int)(mark - whole) + 1;
    int n = snprintf(r->entry, sizeof(r->entry), "%.*s%s", (int)(mark - whole), whole, mark + 1);
    assert_in_range(n, 1, sizeof(r->entry) - 1);
    snprintf(r->key, sizeof(r->key), "%s", key);
    buf_printf(&s->text, "  - %s\n", r->entry);
}

static void problem(struct sheet *s, const struct row *r, const char *what, const char *said) {
    print_error("%s\n    %s: %.300s\n", r->entry, what, said);
    s->problems++;
}

/* The message of a line; "" where there is none. */
static const char *message_at(const char *said, int line, int *ret_column, int *ret_n) {
    static char message[1200];
    char place[16];
    int n = snprintf(place, sizeof(place), "%d:", line);
    *message = '\0';
    *ret_n = *ret_column = 0;
    for (; *said; said += strcspn(said, "\n"), said += *said == '\n') {
        if (strncmp(said, place, (size_t)n) != 0)
            continue;
        if ((*ret_n)++)
            continue;
        *ret_column = atoi(said + n);
        const char *words = strchr(said + n, ' ');
        snprintf(message, sizeof(message), "%.*s", (int)strcspn(words + 1, "\n"), words + 1);
    }
    return message;
}

static void check_row(struct sheet *s, const char *said, int i) {
    const struct row *r = &s->rows[i];
    int column, n;
    const char *message = message_at(said, world_line(s->world) + i, &column, &n);
    if (!n)
        problem(s, r, "is accepted", "");
    else if (n > 1)
        problem(s, r, "is told more than once", message);
    else if (column != r->column)
        problem(s, r, "is told at another column", message);
    else if (!strstr(message, r->key))
        problem(s, r, r->key, message);
}

/* Whether all is as it should be. */
static void sheet_check(struct sheet *s) {
    struct scratch x;
    struct buf said = {0};
    if (!s->n)
        return;
    scratch_load(&x, buf_str(&s->text));
    world_plan(&x);
    scratch_messages(&x, &said);
    for (int i = 0; i < s->n; i++)
        check_row(s, buf_str(&said), i);
    buf_fini(&said);
    scratch_drop(&x);
}

static void sheet_end(struct sheet *s) {
    sheet_check(s);
    buf_fini(&s->text);
    if (s->problems)
        fail_msg("%d of them", s->problems);
}

static void sheet_room(struct sheet *s, const char *world) {
    if (s->world == world && s->n < ROWS_MAX)
        return;
    sheet_check(s);
    sheet_begin(s, world);
}

/* ---- an entry of a fault ---- */

/* "fault: x, on: y", as its example has it; whom: without it. */
static const char *plain(const struct fault *f, bool whom) {
    static char text[200];
    const char *on = strstr(f->example, ", on: ");
    int n = on && whom ? 2 + (int)strcspn(on + 2, ",}") : 0;
    snprintf(text, sizeof(text), "fault: %s%.*s", f->name, n, on ? on : "");
    return text;
}

static bool names_whom(const struct fault_param *p) {
    return str_eq(p->name, "groups") || str_eq(p->name, "shape");
}

/* What stands before the parameter, so that it is not the first: "other: 1, ". */
static const char *before(const struct fault *f, const struct fault_param *p) {
    static char text[100];
    *text = '\0';
    for (const struct fault_param *o = f->params; o->name && !*text; o++)
        if (o != p && *o->default_text != '(' && *o->default_text)
            snprintf(text, sizeof(text), *o->default_text == '{' ? "%s: \"%s\", " : "%s: %s, ",
                     o->name, o->default_text);
    return text;
}

static void try_value(struct sheet *s, size_t of, const struct fault_param *p, const char *value) {
    const struct fault *f = faults[of];
    char entry[400];
    snprintf(entry, sizeof(entry), "%s, with: {%s%s: @%s}", plain(f, !names_whom(p)), before(f, p),
             p->name, value);
    sheet_room(s, world_of(of));
    sheet_add(s, p->name, entry);
}

static void test_every_value_of_a_wrong_type_is_refused(void **state) {
    (void)state;
    static const char *const values[] = {"[1, 2]", "{a: 1}", NULL};
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++)
        for (const struct fault_param *p = faults[i]->params; p->name; p++)
            for (size_t k = 0; values[k]; k++)
                try_value(&s, i, p, values[k]);
    sheet_end(&s);
}

/* ---- values ---- */

static bool is_any(const char *types, const char *type) {
    const char *at = strstr(types, type);
    return at && (at == types || at[-1] == ' ') && strchr(" ", at[strlen(type)]);
}

/* What none of these types can be. "string" is what a fault reads itself: a share, a rate, a word. */
static const struct {
    const char *types, *value;
} wrong[] = {
    /* another type's, or another unit */
    {"int duration bool string nodes groups", "5MiB"},
    {"int duration bool string nodes groups", "1bit"},
    {"int duration bool string nodes groups", "4k"},
    {"int duration bool string nodes groups", "nosuchword"},
    {"int duration bool string nodes groups", "'a b'"},
    {"int duration bool string nodes groups", "5 s"},
    {"int duration bool string nodes groups", "1 %"},
    {"int bool nodes groups", "2s"},
    {"int duration bool nodes groups", "5%"},
    {"int duration bool nodes groups", "10mbit"},
    {"int duration bool nodes groups", "SIGTERM"},
    {"int duration string nodes groups", "yes"},
    {"duration bool nodes groups", "5"},
    {"int bool nodes groups", "1.5"},
    {"int duration bool string nodes groups", "0x10"},
    {"int duration bool string nodes groups", "+5"},
    {"int duration bool string nodes groups", "1.5.5"},
    {"int duration bool string nodes groups", "\xd9\xa1"}, /* a digit, and not of C's */
    /* nothing */
    {"int duration bool string text nodes groups", "''"},
    {"int duration bool string nodes groups", "' '"},
    /* below the least, above the most, no number at all */
    {"int duration bool string nodes groups", "-1"},
    {"duration", "-1s"},
    {"int duration bool string nodes groups", "-5%"},
    {"int duration bool string nodes groups", "101%"},
    {"int duration bool string nodes groups", "99999999999999999999"},
    {"int duration bool string nodes groups", "-99999999999999999999"},
    {"int duration bool string nodes groups", "99999999999h"},
    {"int duration bool string nodes groups", "999999gbit"},
    {"int duration bool string nodes groups", "-10mbit"},
    {"int duration bool string nodes groups", "1e400"},
    {"int duration bool string nodes groups", "1e400s"},
    {"int duration bool string nodes groups", "nan"},
    {"int duration bool string nodes groups", "nan%"},
    {"int duration bool string nodes groups", "nans"},
    {"int duration bool string nodes groups", "infs"},
    /* nodes that are none, or twice */
    {"int duration bool string nodes groups", "n9"},
    {"int duration bool string nodes groups", "'n0,,n1'"},
    {"int duration bool string nodes groups", "n0|n9"},
    {"int duration bool string nodes groups", "'n0,n0'"},
};

static void test_every_value_that_cannot_be_meant_is_refused(void **state) {
    (void)state;
    struct sheet s = {0};
    int tried = 0;
    for (size_t i = 0; faults[i]; i++)
        for (const struct fault_param *p = faults[i]->params; p->name; p++)
            for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++)
                if (is_any(wrong[k].types, p->type)) {
                    try_value(&s, i, p, wrong[k].value);
                    tried++;
                }
    sheet_end(&s);
    print_message("%d values are refused\n", tried);
    assert_true(tried > 2000);
}

/* A number that is too small or too large is told which numbers may stand there; those next to them
 * are refused. */
static void test_every_number_is_told_its_bounds_and_held_to_them(void **state) {
    (void)state;
    struct sheet s = {0};
    int tried = 0;
    for (size_t i = 0; faults[i]; i++)
        for (const struct fault_param *p = faults[i]->params; p->name; p++) {
            struct err err = {0};
            long long least, most;
            char value[32];
            const struct fault_arg v = {p->name, "-99999999999999999999"};
            const struct fault_args a = {.v = &v, .n = 1};
            if (!str_eq(p->type, "int"))
                continue;
            assert_true(faults[i]->check(&a, &err) < 0);
            const char *from = strstr(err.msg, " from ");
            if (!from || sscanf(from, " from %lld to %lld", &least, &most) != 2)
                fail_msg("%s: %s is not told its bounds: %s", faults[i]->name, p->name, err.msg);
            snprintf(value, sizeof(value), "%lld", least - 1);
            try_value(&s, i, p, value);
            snprintf(value, sizeof(value), "%llu", (unsigned long long)most + 1);
            try_value(&s, i, p, value);
            tried++;
        }
    sheet_end(&s);
    assert_true(tried > 10);
}

/* ---- keys ---- */

static bool has_param(const struct fault *f, const char *name) {
    for (const struct fault_param *p = f->params; p->name; p++)
        if (str_eq(p->name, name))
            return true;
    return false;
}

static bool is_of_an_earlier(size_t of, const char *name) {
    while (of--)
        if (has_param(faults[of], name))
            return true;
    return false;
}

/* Messages name the fault, and what it takes. */
static void try_key(struct sheet *s, size_t of, const char *key, const char *said) {
    char entry[400];
    snprintf(entry, sizeof(entry), "%s, with: {%s: @1}", plain(faults[of], true), key);
    sheet_room(s, world_of(of));
    sheet_add(s, said, entry);
}

static void test_every_parameter_of_another_fault_is_refused(void **state) {
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++)
        for (size_t k = 0; faults[k]; k++)
            for (const struct fault_param *p = faults[k]->params; p->name; p++) {
                char said[40];
                snprintf(said, sizeof(said), "has no parameter \"%s\"; ", p->name);
                if (!has_param(faults[i], p->name) && !is_of_an_earlier(k, p->name))
                    try_key(&s, i, p->name, said);
            }
    sheet_end(&s);
}

static void test_every_misspelt_parameter_has_its_nearest_named(void **state) {
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++) {
        try_key(&s, i, "nosuchthing", faults[i]->params->name ? "; it takes " : "; it takes none");
        for (const struct fault_param *p = faults[i]->params; p->name; p++) {
            char key[32], said[40];
            snprintf(key, sizeof(key), "%sx", p->name);
            snprintf(said, sizeof(said), "did you mean \"%s\"?", p->name);
            if (strlen(p->name) > 3)
                try_key(&s, i, key, said);
        }
    }
    sheet_end(&s);
}

static void test_every_parameter_that_is_given_twice_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; faults[i]; i++)
        for (const struct fault_param *p = faults[i]->params; p->name; p++) {
            struct scratch x;
            struct buf said = {0}, expected = {0};
            char entry[400];
            int n = snprintf(entry, sizeof(entry), "{when: {time: 5s}, %s, with: {%s: 1, ",
                             plain(faults[i], true), p->name);
            snprintf(entry + n, sizeof(entry) - (size_t)n, "%s: 1}}", p->name);
            world_refusal(&x, world_of(i), entry);
            buf_printf(&expected, "%d:%d: \"%s\" is given twice\n", world_line(world_of(i)),
                       WORLD_INDENT + n + 1, p->name);
            scratch_messages(&x, &said);
            assert_string_equal(buf_str(&said), buf_str(&expected));
            buf_fini(&said);
            buf_fini(&expected);
            scratch_drop(&x);
        }
}

/* ---- whom ---- */

static const struct {
    unsigned kinds; /* which of them a fault must take for this to be right */
    const char *on;
} whom[] = {
    {TARGET_NODE | TARGET_AGENT | TARGET_WORKER, "n0"},
    {TARGET_NODE | TARGET_AGENT | TARGET_WORKER, "node of rank 0"},
    {TARGET_NODE | TARGET_AGENT | TARGET_WORKER, "random of nodes"},
    {TARGET_NODE | TARGET_AGENT | TARGET_WORKER, "majority"},
    {TARGET_AGENT, "agents"},
    {TARGET_WORKER, "workers"},
    {TARGET_WORKER, "rank 0"},
    {TARGET_WORKER, "n0/0"},
    {TARGET_WORKER, "random of workers"},
    {TARGET_STORE | TARGET_NODE | TARGET_AGENT, "store"},
    {TARGET_STORE | TARGET_NODE | TARGET_AGENT, "random of store"},
};

static void try_target(struct sheet *s, size_t of, const char *on, const char *said) {
    char entry[400];
    snprintf(entry, sizeof(entry), "%s, on: @%s", plain(faults[of], false), on);
    sheet_room(s, world_of(of));
    sheet_add(s, said, entry);
}

static void test_every_target_of_a_wrong_kind_is_refused(void **state) {
    (void)state;
    struct sheet s = {0};
    int tried = 0;
    for (size_t i = 0; faults[i]; i++)
        for (size_t k = 0; k < sizeof(whom) / sizeof(*whom); k++)
            if (!(faults[i]->targets & whom[k].kinds)) {
                try_target(&s, i, whom[k].on, "cannot be aimed at");
                tried++;
            }
    sheet_end(&s);
    assert_true(tried > 200);
}

/* Of the kind that the fault takes, and not there. */
static void test_every_target_that_the_cluster_has_not_is_refused(void **state) {
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++) {
        unsigned t = faults[i]->targets;
        if (t & (TARGET_NODE | TARGET_AGENT | TARGET_WORKER)) {
            try_target(&s, i, "n7", "there is no n7");
            try_target(&s, i, "node of rank 7", "there is never a rank 7");
            try_target(&s, i, "random 5 of nodes", "there are at most");
            try_target(&s, i, "rack 7", "rack");
        }
        if (t & TARGET_WORKER) {
            try_target(&s, i, "n0/7", "there is no n0/7");
            try_target(&s, i, "rank 7", "there is never a rank 7");
            try_target(&s, i, "random 5 of workers", "there are at most");
        }
        if (t & TARGET_RACK)
            try_target(&s, i, "rack 7", "there is no rack 7");
    }
    sheet_end(&s);
}

static void test_every_target_that_is_none_is_refused(void **state) {
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++) {
        try_target(&s, i, "nobody", "no target");
        try_target(&s, i, "''", "no target");
        try_target(&s, i, "[n0]", "must be a target, not a list");
        try_target(&s, i, "{n0: 1}", "must be a target, not a map");
    }
    sheet_end(&s);
}

/* A store that an agent serves is no program of its own, and one that is none is not there. */
static void test_every_fault_on_a_store_that_is_not_there_is_refused(void **state) {
    static const char served[] = "launcher: torchrun\ncluster: {nodes: 4, gpus_per_node: 0}\n",
                      none[] = "launcher: 'go {worker}'\n"
                               "cluster: {nodes: 4, gpus_per_node: 0, store: none}\n";
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++) {
        char entry[400];
        snprintf(entry, sizeof(entry), "%s, on: @store", plain(faults[i], false));
        if (!(faults[i]->targets & (TARGET_STORE | TARGET_NODE)) || faults[i]->suits ||
            fault_has(faults[i], EFFECT_STARTS_NODE))
            continue;
        sheet_room(&s, none);
        sheet_add(&s, "cluster.store is none", entry);
    }
    for (size_t i = 0; faults[i]; i++) {
        char entry[400];
        snprintf(entry, sizeof(entry), "%s, on: @store", plain(faults[i], false));
        if (faults[i]->targets != TARGET_STORE || faults[i]->suits)
            continue;
        sheet_room(&s, served);
        sheet_add(&s, "the store is served by the agent of n0", entry);
    }
    sheet_end(&s);
}

static void test_every_fault_needs_a_target(void **state) {
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        struct scratch x;
        char entry[400], place[16];
        snprintf(entry, sizeof(entry), "{when: {time: 5s}, %s}", plain(faults[i], false));
        snprintf(place, sizeof(place), ":%d:%d:", world_line(world_of(i)), WORLD_INDENT + 1);
        const char *why = world_refusal(&x, world_of(i), entry);
        if (!why || !strstr(why, place) || !strstr(why, " needs a target, for example on: "))
            fail_msg("%s: %s", faults[i]->name, why ? why : "is accepted");
        scratch_drop(&x);
    }
}

/* ---- how long ---- */

static void try_rest(struct sheet *s, size_t of, const char *rest, const char *said) {
    char entry[400];
    snprintf(entry, sizeof(entry), "%s, %s", plain(faults[of], true), rest);
    sheet_room(s, world_of(of));
    sheet_add(s, said, entry);
}

static void test_every_end_that_a_fault_cannot_have_is_refused(void **state) {
    static const char *const ends[] = {"for: @2s", "until: @{round: 2}"};
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        bool lasts = fault_has(f, EFFECT_LASTING);
        for (size_t k = 0; k < 2; k++)
            if (!lasts || f->course)
                try_rest(&s, i, ends[k], lasts ? "says itself how long it lasts" : "does not last");
        if (!f->profile)
            try_rest(&s, i, "profile: [@{at: 0s, delay: 1ms}]", "does not change while it lasts");
    }
    sheet_end(&s);
}

static void test_every_time_that_is_none_is_refused(void **state) {
    static const char *const times[][2] = {
        {"for: @5", "for: \"5\" is not a duration"},
        {"for: @5MiB", "for: \"5MiB\" is not a duration"},
        {"for: @-1s", "for: \"-1s\" is not a duration"},
        {"for: @''", "for: \"\" is not a duration"},
        {"for: @99999999999h", "for: \"99999999999h\" is not a duration"},
        {"for: @0s", "for must be longer than 0"},
        {"for: @[1s]", "for must be a duration, not a list"},
        {"for: @{a: 1s}", "for must be a duration, not a map"},
        {"with: @5", "with must be a map of parameters"},
        {"with: @[5]", "with must be a map of parameters"},
        {"times: @0", "times must be from 1 to 1000"},
        {"times: @many", "times must be"},
        {"sticky: @agent", "sticky must be node"},
    };
    (void)state;
    struct sheet s = {0};
    for (size_t i = 0; faults[i]; i++)
        for (size_t k = 0; k < sizeof(times) / sizeof(*times); k++)
            try_rest(&s, i, times[k][0], times[k][1]);
    sheet_end(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_of_a_wrong_type_is_refused),
        cmocka_unit_test(test_every_value_that_cannot_be_meant_is_refused),
        cmocka_unit_test(test_every_number_is_told_its_bounds_and_held_to_them),
        cmocka_unit_test(test_every_parameter_of_another_fault_is_refused),
        cmocka_unit_test(test_every_misspelt_parameter_has_its_nearest_named),
        cmocka_unit_test(test_every_parameter_that_is_given_twice_is_refused),
        cmocka_unit_test(test_every_target_of_a_wrong_kind_is_refused),
        cmocka_unit_test(test_every_target_that_the_cluster_has_not_is_refused),
        cmocka_unit_test(test_every_target_that_is_none_is_refused),
        cmocka_unit_test(test_every_fault_on_a_store_that_is_not_there_is_refused),
        cmocka_unit_test(test_every_fault_needs_a_target),
        cmocka_unit_test(test_every_end_that_a_fault_cannot_have_is_refused),
        cmocka_unit_test(test_every_time_that_is_none_is_refused),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
