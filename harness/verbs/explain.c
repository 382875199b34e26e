/* Prints what a word means: a key, a fault, a check, a verb or another name. */
#include "base/str.h"
#include "faults/hazards.h"
#include "faults/need.h"
#include "harness/judge/checks/check.h"
#include "harness/scenario/expand/schedule.h"
#include "harness/scenario/keys.h"
#include "harness/invariants/invariant.h"
#include "harness/verbs.h"
#include "harness/verbs/manuals.h"
#include "reports/report.h"

#include <string.h>

/* Nobody reads a sentence of 200 columns. */
static void print_text(const char *text) {
    enum { COLUMNS = 90 };
    while (strlen(text) > COLUMNS) {
        size_t n = COLUMNS;
        while (n > 0 && text[n] != ' ')
            n--;
        if (n == 0)
            break;
        printf("  %.*s\n", (int)n, text);
        text += n + 1;
    }
    printf("  %s\n", text);
}

/* "name: what it is", folded. */
static void print_titled(const char *name, const char *text) {
    enum { COLUMNS = 90 };
    size_t n = strlen(text), room = COLUMNS - strlen(name);
    if (n > room)
        for (n = room; n > 0 && text[n] != ' '; n--)
            ;
    printf("%s: %.*s\n", name, (int)n, text);
    if (text[n])
        print_text(text + n + 1);
}

static void print_key(const char *name, const struct key *k) {
    printf("%s: %s\n", name, k->type);
    print_text(k->text);
    if (k->required)
        puts("  required");
    else if (k->default_text && *k->default_text)
        printf("  default: %s\n", k->default_text);
    if (k->example)
        printf("  example: %s\n", k->example);
    if (!k->read)
        puts("  not built yet");
}

static void print_section(const struct section *s) {
    print_titled(s->name, s->text);
    for (const struct key *k = s->keys; k->name; k++)
        printf("  %-18s %s%s\n", k->name, k->type, k->read ? "" : " (not built yet)");
}

static bool explain_key(const char *name) {
    bool found = false;
    for (size_t i = 0; sections[i]; i++)
        if (str_eq(sections[i]->name, name)) {
            print_section(sections[i]);
            found = true;
        }
    size_t it = 0;
    ARENA_FINI struct arena a = {0};
    const struct section *s = NULL;
    const struct key *k;
    for (; (k = keys_find(name, &it, &s)); found = true)
        print_key(arena_printf(&a, "%s.%s", s->name, k->name), k);
    if (!found && (k = keys_at(name, &s))) {
        print_key(name, k);
        found = true;
    }
    return found;
}

static bool explain_fault(const char *name) {
    const struct fault *f = fault_find(name);
    if (!f)
        return false;
    printf("%s: %s\n  aimed at:%s%s%s%s\n", f->name, f->summary,
           f->targets & TARGET_WORKER ? " workers" : "", f->targets & TARGET_AGENT ? " agents" : "",
           f->targets & TARGET_NODE   ? " nodes"
           : f->targets & TARGET_RACK ? " racks"
                                      : "",
           f->targets & TARGET_STORE ? " the store" : "");
    for (const struct fault_param *p = f->params; p && p->name; p++)
        printf("  with %s (%s, else %s): %s\n", p->name, p->type,
               p->default_text ? p->default_text : "nothing", p->text);
    for (int i = 0; i < EFFECTS_N; i++)
        if (fault_has(f, 1U << i))
            printf("  %-14s %s\n", effect_words[i].word, effect_words[i].text);
    if (f->needs)
        printf("  needs: %s\n", fault_needs_text(f->needs));
    if (fault_has(f, EFFECT_LASTING))
        printf("  lasts: for as long as for: says, until an entry heals it, or to the end of the "
               "run\n");
    printf("  undo: %s\n  touches: %s\n", f->undo ? f->undo : "nothing to undo",
           f->blast ? f->blast : "its target only");
    if (f->example)
        printf("  example: %s\n", f->example);
    return true;
}

static bool explain_check(const char *name) {
    static const char *const kinds[] = {
        [CLASS_INVARIANT] = "always judged",
        [CLASS_EXPECT] = "judged when the scenario asks for it",
        [CLASS_FAULTS] = "does the run show anything",
        [CLASS_HARNESS] = "is the harness healthy",
        [CLASS_CLEANUP] = "has the harness left something behind",
    };
    const struct check *c = check_find(name);
    if (!c)
        return false;
    printf("%s: %s\n", c->name, c->summary);
    print_text(c->text);
    printf("  %s; reads", kinds[c->class]);
    for (int s = 0; s < SOURCE_N; s++)
        if (c->sources & 1u << s)
            printf(" %s", source_name((enum source)s));
    puts(c->sources ? "" : " what the harness itself did");
    printf("  example: %s\n", c->example);
    return true;
}

static bool explain_invariant(const char *name) {
    const struct invariant *i = invariant_find(name);
    if (!i)
        return false;
    printf("%s: %s\n", i->name, i->summary);
    print_text(i->text);
    printf("  %s of the protocol; judged by rankquake sim after every change", i->number);
    printf(i->check ? ", of a recorded run by the check %s\n" : "\n", i->check);
    return true;
}

static bool explain_verb(const char *name) {
    const struct verb *v = verb_find(name);
    if (!v || !v->summary)
        return false;
    verb_print_help(v, stdout);
    return true;
}

/* What to expect of a job as it is. */
static bool explain_events(const char *name) {
    if (!str_eq(name, "events"))
        return false;
    BUF_FINI struct buf out = {0};
    checks_without_events(&out);
    printf("events: what a job reports while it runs\n");
    print_text("A job need not report anything. The harness sees from outside what the workers "
               "were given, how they ended, what the wire carried and what is left behind. So of a "
               "job that reports nothing these checks are judged:");
    printf("%s", buf_str(&out));
    print_text("Without steps a trigger waits for a time, a round or a line (when.log), times are "
               "measured to the start of the last worker, and limits.stall is not watched.");
    return true;
}

static bool explain_preset(const char *name) {
    const struct preset *p = presets;
    while (p->name && !str_eq(p->name, name))
        p++;
    if (!p->name)
        return false;
    printf("%s: a preset of observe: %s\n", p->name, p->summary);
    for (size_t i = 0; i < p->n; i++)
        printf("  %s: '%s'\n", p->v[i].kind, p->v[i].pattern);
    return true;
}

static bool explain_weights(const char *name) {
    const struct hazards *w = hazards;
    while (w->name && !str_eq(w->name, name))
        w++;
    if (!w->name)
        return false;
    ARENA_FINI struct arena a = {0};
    print_titled(name, w->text);
    for (const struct hazard *v = hit_shares(&a, w); v->fault; v++)
        printf("  %-16s %g\n", v->fault, v->share);
    printf("  example: random: {weights: %s}\n", name);
    return true;
}

static bool explain_report(const char *name) {
    const struct report *r = report_find(name);
    if (!r)
        return false;
    printf("%s: %s\n", r->name, r->summary);
    if (r->file)
        printf("  written into every run directory as %s\n", r->file);
    printf("  rankquake report DIR --to %s prints it\n", r->name);
    return true;
}

enum { NAMES_MAX = 1000 };

static void add(const char **names, size_t *n, const char *name) {
    if (*n < NAMES_MAX)
        names[(*n)++] = name;
}

const char *const *explain_names(struct arena *a) {
    const char **names = arena_array(a, const char *, NAMES_MAX + 1);
    size_t n = 0;
    for (size_t i = 0; faults[i]; i++)
        add(names, &n, faults[i]->name);
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            add(names, &n, k->name);
            add(names, &n, arena_printf(a, "%s.%s", sections[i]->name, k->name));
        }
    for (const char **path = keys_paths(a); *path; path++)
        add(names, &n, *path);
    for (size_t i = 0; checks[i]; i++)
        add(names, &n, checks[i]->name);
    for (size_t i = 0; invariants[i]; i++)
        add(names, &n, invariants[i]->name);
    for (size_t i = 0; reports[i]; i++)
        add(names, &n, reports[i]->name);
    for (const struct preset *p = presets; p->name; p++)
        add(names, &n, p->name);
    for (const struct hazards *w = hazards; w->name; w++)
        add(names, &n, w->name);
    add(names, &n, "events");
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary)
            add(names, &n, verbs[i]->name);
    return names;
}

static int explain(int argc, char **argv) {
    if (argc != 2)
        return verb_usage_error(&verb_explain, argc < 2 ? "which name?" : "one name at a time");
    const char *name = argv[1];
    bool found = explain_key(name);
    found |= explain_fault(name);
    found |= explain_check(name);
    found |= explain_invariant(name);
    found |= explain_report(name);
    found |= explain_events(name);
    found |= explain_preset(name);
    found |= explain_weights(name);
    found |= explain_verb(name);
    ARENA_FINI struct arena arena = {0};
    const char *near = found ? NULL : str_nearest(name, explain_names(&arena));
    if (!found && near)
        fprintf(stderr, "rankquake explain: nothing is called \"%s\"; did you mean \"%s\"?\n", name,
                near);
    else if (!found)
        fprintf(stderr,
                "rankquake explain: nothing is called \"%s\"; rankquake list shows what "
                "there is\n",
                name);
    return found ? EXIT_PASS : EXIT_USAGE_ERROR;
}

const struct verb verb_explain = {
    .name = "explain",
    .usage = "explain NAME",
    .summary = "explain a fault, a check, a key of a scenario (job, job.run), a verb, a preset or "
               "the events",
    .example = "explain worker-kill",
    .operands = "NAME",
    .main = explain,
};
