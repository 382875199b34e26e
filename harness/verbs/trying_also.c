/* Which disasters `try --also` adds to the five: faults by their names, by families, or all. */
#include "harness/verbs/trying.h"

#include "base/str.h"
#include "faults/fault.h"
#include "harness/play/announcement.h"
#include "harness/scenario/yaml.h"

#include <stdlib.h>
#include <string.h>

static bool is_there(const struct trying *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (str_eq(t->faults[i].name, name))
            return true;
    return false;
}

/* With the parameters of its example. */
static struct fault_course course_of(struct trying *t, const struct fault *f) {
    struct diagnostics d = {0};
    const struct yaml *with =
        yaml_get(yaml_parse(&t->arena, f->example, strlen(f->example), 0, &d), "with");
    struct fault_arg *v = arena_array(&t->arena, struct fault_arg, with ? with->length + 1 : 1);
    struct fault_args a = {.v = v};
    yaml_each(it, with) v[a.n++] = (struct fault_arg){it->key, it->text};
    diagnostics_fini(&d);
    return fault_course(f, &a);
}

static void add(struct trying *t, const struct fault *f) {
    struct fault_course course = course_of(t, f);
    const struct generate_known k = {f->name,    f->summary,      f->example,
                                     f->effects, course.lasts_ns, course.follow_ns};
    if (!is_there(t, f->name))
        t->faults[t->n++] = generate_also(&t->arena, &k);
}

/* A command says nothing of racks. */
static bool takes_racks(const struct fault *f) {
    return f->targets == TARGET_RACK;
}

static const struct fault *of_racks(const char *word) {
    const struct fault *f = fault_find(word);
    return f && takes_racks(f) ? f : NULL;
}

/* Of many at once those are left out that the five have. */
static bool add_word(struct trying *t, const char *word) {
    bool known = false;
    for (size_t i = 0; faults[i]; i++) {
        bool many = str_eq(word, "all") || str_eq(word, fault_family(faults[i]));
        bool named = str_eq(word, faults[i]->name);
        known |= many || named;
        if (named || (many && !(faults[i]->needs & FAULT_NEEDS_SCHEDULER) &&
                      !generate_has(faults[i]->name) && !takes_racks(faults[i])))
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

void trying_saving(struct trying *t) {
    struct generate_fault f;
    if (!generate_saving(&t->arena, t->base, &t->run, &f)) {
        announcement_say(
            "nothing tells when the job saves, so no worker is killed meanwhile: --set "
            "job.checkpoint.dir=DIR shows it, DIR as your script writes it");
        return;
    }
    announcement_say("the job saves, so there is one more run: %s", f.words);
    t->faults[t->n++] = f;
    t->overview.rows_n++;
}

int trying_also(struct trying *t, const char *const *also) {
    t->faults = arena_array(&t->arena, struct generate_fault, GENERATE_FAULTS + 1 + faults_n);
    for (t->n = 0; t->n < GENERATE_FAULTS; t->n++)
        t->faults[t->n] = generate_faults[t->n];
    for (; *also; also++)
        for (char **word = str_split(&t->arena, *also, ',', NULL); *word; word++) {
            if (of_racks(*word))
                return verb_usage_error(&verb_try,
                                        "--also: %s takes racks, of which a command says nothing: "
                                        "write `rankquake init` and add cluster.racks",
                                        *word);
            if (!add_word(t, *word))
                return say_unknown(t, *word);
        }
    size_t n = (size_t)t->n + 1; /* trying_saving may add one */
    t->costs = arena_array(&t->arena, struct generate_cost, n);
    t->files = arena_array(&t->arena, struct job, n);
    t->rows = arena_array(&t->arena, struct overview_row, n + 1);
    return 0;
}
