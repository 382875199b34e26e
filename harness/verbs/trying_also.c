/* Which disasters `try --also` adds to the five: faults by their names, by families, or all. */
#include "harness/verbs/trying.h"

#include "base/str.h"
#include "faults/fault.h"

#include <stdlib.h>

static bool is_there(const struct trying *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (str_eq(t->faults[i].name, name))
            return true;
    return false;
}

static void add(struct trying *t, const struct fault *f) {
    const struct generate_known k = {f->name, f->summary, f->example, f->effects};
    if (!is_there(t, f->name))
        t->faults[t->n++] = generate_also(&t->arena, &k);
}

/* Of many at once those are left out that the five have. */
static bool add_word(struct trying *t, const char *word) {
    bool known = false;
    for (size_t i = 0; faults[i]; i++) {
        bool many = str_eq(word, "all") || str_eq(word, fault_family(faults[i]));
        bool named = str_eq(word, faults[i]->name);
        known |= many || named;
        if (named || (many && !generate_has(faults[i]->name)))
            add(t, faults[i]);
    }
    return known;
}

/* Names, families and "all", each once as far as it matters. */
static int say_unknown(const struct trying *t, const char *word) {
    const char *known[512];
    size_t n = 0;
    known[n++] = "all";
    for (size_t i = 0; faults[i] && n < 510; i++) {
        known[n++] = faults[i]->name;
        known[n++] = fault_family(faults[i]);
    }
    known[n] = NULL;
    const char *near = str_nearest(word, known);
    if (near)
        return verb_usage_error(&verb_try, "--also: there is no fault \"%s\"; did you mean \"%s\"?",
                                word, near);
    return verb_usage_error(&verb_try,
                            "--also: there is no fault \"%s\"; `rankquake list faults` names "
                            "them, and a family (process, node, network ...) or all will do",
                            word);
}

int trying_also(struct trying *t, const char *const *also) {
    size_t most = GENERATE_FAULTS;
    while (faults[most - GENERATE_FAULTS])
        most++;
    t->faults = arena_array(&t->arena, struct generate_fault, most);
    for (t->n = 0; t->n < GENERATE_FAULTS; t->n++)
        t->faults[t->n] = generate_faults[t->n];
    for (; *also; also++)
        for (char **word = str_split(&t->arena, *also, ',', NULL); *word; word++)
            if (!add_word(t, *word))
                return say_unknown(t, *word);
    t->costs = arena_array(&t->arena, struct generate_cost, (size_t)t->n);
    t->files = arena_array(&t->arena, struct job, (size_t)t->n);
    t->rows = arena_array(&t->arena, struct overview_row, (size_t)t->n + 1);
    return 0;
}
