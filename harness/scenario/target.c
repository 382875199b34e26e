#include "harness/scenario/target.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

static const char *const groups[] = {"nodes", "agents", "workers", NULL};
static const enum target_what kinds[] = {TARGET_NODES, TARGET_AGENTS, TARGET_WORKERS};

static bool parse_group(const char *word, enum target_what *ret) {
    for (int i = 0; groups[i]; i++)
        if (str_eq(word, groups[i]))
            return *ret = kinds[i], true;
    return false;
}

static bool parse_count(const char *word, int64_t min, int64_t max, int *ret) {
    int64_t v;
    if (!str_to_i64(word, min, max, &v))
        return false;
    *ret = (int)v;
    return true;
}

/* All nodes of rack 0. */
static bool parse_rack(const char *number, struct target_spec *t) {
    if (!parse_count(number, 0, 100000, &t->rack))
        return false;
    t->rack++;
    return true;
}

/* n2 or n2/0 */
static bool parse_named(struct arena *a, const char *word, struct target_spec *t) {
    size_t parts;
    char **v = str_split(a, word, '/', &parts);
    int ignored;
    if (parts > 2 || v[0][0] != 'n' || !parse_count(v[0] + 1, 0, 100000, &ignored))
        return false;
    t->pick = PICK_NAMED;
    t->what = parts == 2 ? TARGET_WORKERS : TARGET_NODES;
    t->node = arena_printf(a, "n%d", ignored);
    t->local_rank = -1;
    return parts == 1 || parse_count(v[1], 0, 100000, &t->local_rank);
}

/* What stands behind "of": workers, racks, rack 0, store */
static bool parse_whom(char **v, size_t n, struct target_spec *t) {
    if (n == 2 && str_eq(v[0], "rack"))
        return parse_rack(v[1], t);
    if (n == 1 && str_eq(v[0], "racks"))
        return t->what = TARGET_RACKS, true;
    if (n == 1 && str_eq(v[0], "store"))
        return t->what = TARGET_STORES, true;
    return n == 1 && parse_group(v[0], &t->what);
}

/* 50% or 50% of workers */
static bool parse_percent(struct arena *a, char **v, size_t n, struct target_spec *t) {
    size_t len = strlen(v[0]);
    if (len < 2 || v[0][len - 1] != '%' ||
        !parse_count(arena_strndup(a, v[0], len - 1), 1, 100, &t->count))
        return false;
    t->pick = PICK_PERCENT;
    return n == 1 || (n > 2 && str_eq(v[1], "of") && parse_whom(v + 2, n - 2, t));
}

/* random of workers, random 2 of nodes */
static bool parse_random(char **v, size_t n, struct target_spec *t) {
    size_t of = n > 2 && !str_eq(v[1], "of") ? 2 : 1;
    t->pick = PICK_RANDOM;
    t->count = 1;
    if (of == 2 && !parse_count(v[1], 1, 100000, &t->count))
        return false;
    return n > of + 1 && str_eq(v[of], "of") && parse_whom(v + of + 1, n - of - 1, t);
}

/* rank 0, node of rank 0, rack of rank 0 */
static bool parse_rank(char **v, size_t n, struct target_spec *t) {
    if (n == 4 && str_eq(v[1], "of")) {
        t->node_of_rank = true;
        t->rack_of_rank = str_eq(v[0], "rack");
        v += 2, n -= 2;
    }
    t->pick = PICK_RANK;
    t->what = t->node_of_rank ? TARGET_NODES : TARGET_WORKERS;
    return n == 2 && str_eq(v[0], "rank") && parse_count(v[1], 0, 1000000, &t->rank);
}

/* store, store-leader, store-0, coordinator */
static bool parse_role(struct arena *a, const char *word, struct target_spec *t) {
    bool leader = str_eq(word, "store-leader");
    int member;
    if (str_eq(word, "coordinator"))
        t->pick = PICK_COORDINATOR;
    else if (str_starts(word, "store-") && parse_count(word + strlen("store-"), 0, 9, &member))
        *t = (struct target_spec){.what = TARGET_STORES,
                                  .pick = PICK_NAMED,
                                  .node = arena_printf(a, "store-%d", member),
                                  .local_rank = -1};
    else if (leader || str_eq(word, "store"))
        t->what = TARGET_STORES;
    else
        return false;
    if (leader)
        t->pick = PICK_LEADER;
    return true;
}

/* majority, majority of nodes */
static bool parse_majority(char **v, size_t n, struct target_spec *t) {
    t->pick = PICK_MAJORITY;
    return n == 1 || (n > 2 && str_eq(v[1], "of") && parse_whom(v + 2, n - 2, t));
}

static int refuse(const char *text, const char *first, struct err *err) {
    static const char *const words[] = {
        "nodes",        "agents",   "workers", "rank",  "random",      "node", "store",
        "store-leader", "majority", "rack",    "racks", "coordinator", NULL};
    const char *near = str_nearest(first, words);
    if (near && str_eq(near, first))
        near = NULL;
    return err_say(err, -EINVAL,
                   "on: \"%s\" is no target; %s%s%swrite nodes, agents, workers, n2, n2/0, rank 0, "
                   "node of rank 0, random of workers, random 2 of nodes, 50%%, majority, rack 0, "
                   "store, store-0, store-leader, majority of store or coordinator",
                   text, near ? "did you mean \"" : "", near ? near : "", near ? "\"? Or " : "");
}

int target_parse(struct arena *a, const char *text, struct target_spec *ret, struct err *err) {
    size_t n;
    char **v = str_split(a, text, ' ', &n);
    struct target_spec t = {.local_rank = -1};
    bool good = false;
    if (str_eq(v[0], "random"))
        good = parse_random(v, n, &t);
    else if (str_eq(v[0], "rack") && n == 2)
        good = parse_rack(v[1], &t);
    else if (str_eq(v[0], "rank") || str_eq(v[0], "node") || str_eq(v[0], "rack"))
        good = parse_rank(v, n, &t);
    else if (str_eq(v[0], "majority"))
        good = parse_majority(v, n, &t);
    else if (strchr(v[0], '%'))
        good = parse_percent(a, v, n, &t);
    else if (n == 1)
        good = parse_group(v[0], &t.what) || parse_role(a, v[0], &t) || parse_named(a, v[0], &t);
    if (!good)
        return refuse(text, v[0], err);
    *ret = t;
    return 0;
}
