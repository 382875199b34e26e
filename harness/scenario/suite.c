/* Loads a suite: a list of scenarios, each with its values. */
#include "harness/scenario/load.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void read_files(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct suite *u = out;
    size_t i = 0;
    if (!reader_words(r, k, n, &u->files, &u->n))
        return;
    reader_no_empty(r, k, n);
    struct place *places = arena_array(r->arena, struct place, u->n + 1);
    yaml_each(it, n) places[i++] = it->place;
    u->places = places;
    if (!u->n)
        diagnostics_add(r->d, n->place, "suite names no file; it must be %s", k->type);
}

const struct section section_suite = {
    "suite",
    "A file that names scenarios, to be run one after the other. Those that share job and cluster "
    "share one control run.",
    (const struct key[]){
        {"suite", "a list of files", NULL,
         "Scenarios, folders of them and other suites, by paths from the suite's own folder.",
         "suite: [restart/worker-killed.yaml, membership/node-killed.yaml]", read_files,
         .required = true, .form = "[<text>]"},
        {"about", "a text", NULL, "What they show together.",
         "about: What a job must survive before it may be big.", reader_text,
         offsetof(struct suite, about)},
        {0},
    },
};

/* By the suite's own folder, unless they begin at the root. */
static void find_files(struct suite *u) {
    const char *slash = strrchr(u->file, '/'), **v = arena_array(&u->arena, const char *, u->n + 1);
    for (size_t i = 0; i < u->n; i++)
        v[i] =
            *u->files[i] == '/' || !slash
                ? u->files[i]
                : arena_printf(&u->arena, "%.*s/%s", (int)(slash - u->file), u->file, u->files[i]);
    u->files = v;
}

struct suite *suite_load(const char *file, struct diagnostics *d) {
    struct suite *u = mem_new(struct suite);
    u->file = arena_strdup(&u->arena, file);
    d->file = file;
    struct yaml *root = NULL;
    if (source_read(file, d))
        root = yaml_parse(&u->arena, buf_str(&d->source), d->source.len, 0, d);
    if (!root || root->type != YAML_MAP || !yaml_get(root, "suite")) {
        diagnostics_fini(d); /* scenario_load will say it */
        *d = (struct diagnostics){0};
        return suite_free(u);
    }
    struct reader r = {.arena = &u->arena, .d = d};
    reader_section(&r, &section_suite, root, u);
    if (d->errors)
        return suite_free(u);
    find_files(u);
    return u;
}

struct suite *suite_free(struct suite *u) {
    if (u) {
        struct arena a = u->arena;
        arena_fini(&a);
        free(u);
    }
    return NULL;
}
