#include "harness/verbs/manuals.h"

#include "base/completion.h"
#include "base/manual.h"
#include "base/str.h"
#include "base/texts.h"
#include "harness/judge/checks/check.h"
#include "harness/launch/launcher.h"
#include "harness/play/library.h"
#include "harness/verbs.h"
#include "reports/report.h"

#include <string.h>

/* ---- the tables, as base/manual.h and base/completion.h have them ---- */

static size_t verbs_count(void) {
    size_t n = 0;
    while (verbs[n])
        n++;
    return n;
}

/* Of one verb, or of all. */
static struct manual_option *list_options(struct arena *a, const struct verb *only) {
    enum { OF_A_VERB = 64 };
    struct manual_option *v =
        arena_array(a, struct manual_option, (only ? 1 : verbs_count()) * OF_A_VERB + 3);
    size_t n = 0;
    for (size_t i = 0; verbs[i]; i++)
        for (const struct verb_option *o = verbs[i]->options;
             o && o->name && verbs[i]->summary && (!only || only == verbs[i]); o++)
            if (o->text)
                v[n++] = (struct manual_option){
                    .name = o->name, .value = o->value, .text = o->text, .command = verbs[i]->name};
    v[n++] = (struct manual_option){.letter = 'h', .name = "--help", .text = "show how to use it"};
    if (!only)
        v[n] =
            (struct manual_option){.name = "--version", .text = "print the build", .command = ""};
    return v;
}

static const struct completion_command *list_commands(struct arena *a) {
    struct completion_command *v = arena_array(a, struct completion_command, verbs_count() + 1);
    size_t n = 0;
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary)
            v[n++] =
                (struct completion_command){.name = verbs[i]->name,
                                            .text = verbs[i]->summary,
                                            .operands = verbs[i]->operands,
                                            .takes_command = strstr(verbs[i]->usage, "-- CMD") ||
                                                             strstr(verbs[i]->usage, "-- COMMAND")};
    return v;
}

/* ---- manual pages ---- */

static const struct manual_part *parts_of(struct arena *a, const struct verb *v) {
    struct manual_part *p = arena_array(a, struct manual_part, 5);
    size_t n = 0;
    p[n++] = (struct manual_part){.title = "DESCRIPTION", .text = v->summary};
    p[n++] = (struct manual_part){.title = "OPTIONS", .options = list_options(a, v)};
    if (v->example)
        p[n++] = (struct manual_part){.title = "EXAMPLES",
                                      .text = arena_printf(a, "  rankquake %s", v->example)};
    p[n] = (struct manual_part){.title = "EXIT STATUS", .words = exit_meanings};
    return p;
}

static const struct manual_part *parts_of_all(struct arena *a) {
    enum { PARTS = 5 };
    const char *(*words)[2] = arena_alloc(a, (verbs_count() + 1) * sizeof(*words));
    size_t n = 0;
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary) {
            words[n][0] = verbs[i]->name;
            words[n++][1] = verbs[i]->summary;
        }
    words[n][0] = words[n][1] = NULL;
    const struct manual_part parts[PARTS] = {
        {.title = "DESCRIPTION",
         .text = "Runs a distributed training job in a cluster of its own, breaks the cluster as a "
                 "scenario says, at exactly the step or phase that it names, and judges what came "
                 "of it: ranks, restarts, checkpoints, samples, times, leftovers.",
         .text_after = NULL},
        {.title = "VERBS", .words = (const char *const(*)[2])words},
        {.title = "FILES",
         .text = "The scenarios that come with the program are found by name, wherever it is "
                 "installed: rankquake run smoke, rankquake run restart/worker-killed. "
                 "rankquake list scenarios prints where they are.\n\n"
                 "Runs are written below the directory runs, or where --out says; control runs are "
                 "kept in $XDG_CACHE_HOME/rankquake."},
        {.title = "EXIT STATUS", .words = exit_meanings},
        {0},
    };
    struct manual_part *p = arena_array(a, struct manual_part, PARTS);
    memcpy(p, parts, sizeof(parts));
    return p;
}

/* Every page but the page's own. */
static const char *const *see_also(struct arena *a, const char *own) {
    const char **v = arena_array(a, const char *, verbs_count() + 5);
    size_t n = 0;
    if (*own)
        v[n++] = "rankquake";
    for (size_t i = 0; verbs[i] && !*own; i++)
        if (verbs[i]->summary)
            v[n++] = arena_printf(a, "rankquake-%s", verbs[i]->name);
    v[n++] = "rankprobe";
    v[n++] = "rankrun";
    v[n] = "ranktrain";
    return v;
}

void manuals_put(struct buf *out, const struct verb *v) {
    ARENA_FINI struct arena a = {0};
    const char *const usage[] = {
        v ? arena_printf(&a, "rankquake %s", v->usage) : "rankquake VERB [options] ...", NULL};
    struct manual_page page = {
        .name = v ? arena_printf(&a, "rankquake-%s", v->name) : "rankquake",
        .version = RANKQUAKE_VERSION,
        .summary = v ? v->summary : "break your training job on purpose, before the cluster does",
        .synopsis = usage,
        .parts = v ? parts_of(&a, v) : parts_of_all(&a),
        .see_also = see_also(&a, v ? v->name : ""),
    };
    manual_put(out, &page);
}

/* ---- completion ---- */

static void put_scenarios(struct buf *out) {
    TEXTS_FINI struct texts files = {0};
    library_list(&files);
    for (size_t i = 0; i < files.n; i++) {
        const char *name = files.v[i] + strlen("scenarios/");
        buf_printf(out, "%.*s\n", (int)(strlen(name) - strlen(".yaml")), name);
    }
}

static void put_verbs(struct buf *out) {
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary)
            buf_printf(out, "%s\t%s\n", verbs[i]->name, verbs[i]->summary);
}

static void put_reports(struct buf *out) {
    for (size_t i = 0; reports[i]; i++)
        buf_printf(out, "%s\t%s\n", reports[i]->name, reports[i]->summary);
}

static void put_launchers(struct buf *out) {
    for (size_t i = 0; launchers[i]; i++)
        buf_printf(out, "%s\t%s\n", launchers[i]->name, launchers[i]->text);
}

static void put_checks(struct buf *out) {
    for (size_t i = 0; checks[i]; i++)
        buf_printf(out, "%s\t%s\n", checks[i]->name, checks[i]->summary);
}

static void put_names(struct buf *out) {
    ARENA_FINI struct arena a = {0};
    for (const char *const *name = explain_names(&a); *name; name++)
        buf_printf(out, "%s\n", *name);
}

static void put_isolations(struct buf *out) {
    buf_puts(out, "auto\nnamespaces\nprocesses\n");
}

static void put_formats(struct buf *out) {
    buf_puts(out, "text\njson\n");
}

static void put_runs(struct buf *out) {
    buf_puts(out, ":dirs\n");
}

/* By what the tables call a value. */
static bool put_values(const char *name, struct buf *out) {
    static const struct {
        const char *name;
        void (*put)(struct buf *out);
    } kinds[] = {
        {"CHECK", put_checks},       {"FORMAT", put_formats},     {"KIND", put_isolations},
        {"LAUNCHER", put_launchers}, {"NAME", put_names},         {"REPORT", put_reports},
        {"RUN", put_runs},           {"SCENARIO", put_scenarios}, {"VERB", put_verbs},
        {"X", put_launchers},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (str_eq(kinds[i].name, name)) {
            kinds[i].put(out);
            return true;
        }
    return false;
}

void manuals_complete(struct buf *out, const char *const *words, size_t n) {
    ARENA_FINI struct arena a = {0};
    struct completion c = {
        .commands = list_commands(&a), .options = list_options(&a, NULL), .values = put_values};
    completion_words(out, &c, words, n);
}
