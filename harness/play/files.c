#include "harness/play/files.h"

#include "agent/base/str.h"
#include "harness/scenario/scenario.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUITES_DEEP = 8 };

static int add(struct scenario_files *f, const struct verb *verb, const char *path, bool in_folder,
               int deep);

static int only_scenarios(const struct dirent *d) {
    return !strchr("._", d->d_name[0]) && (str_ends(d->d_name, ".yaml") || d->d_type == DT_DIR);
}

static int add_folder(struct scenario_files *f, const struct verb *verb, const char *path) {
    struct dirent **names;
    int n = scandir(path, &names, only_scenarios, alphasort), r = 0;
    if (n < 0)
        return verb_usage_error(verb, "read the folder %s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = add(f, verb, arena_printf(&f->arena, "%s/%s", path, names[i]->d_name), true, 0);
        free(names[i]);
    }
    free(names);
    return r;
}

static int add_file(struct scenario_files *f, const struct verb *verb, const char *file) {
    if (f->n == FILES_MAX)
        return verb_usage_error(verb, "more than %d scenario files", FILES_MAX);
    f->v[f->n++] = file;
    return 0;
}

static void check_named(const struct suite *u, struct diagnostics *d) {
    struct stat st;
    for (size_t i = 0; u && i < u->n; i++)
        if (stat(u->files[i], &st) != 0)
            diagnostics_add(d, u->places[i], "suite: %s cannot be opened: %s", u->files[i],
                            strerror(errno));
}

/* A suite stands for what it names. In a folder it is left out: its scenarios are there. */
static int add(struct scenario_files *f, const struct verb *verb, const char *path, bool in_folder,
               int deep) {
    struct diagnostics d = {0};
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(f, verb, path);
    if (deep > SUITES_DEEP)
        return verb_usage_error(verb,
                                "%s: suites name suites more than %d deep; does one name itself?",
                                path, SUITES_DEEP);
    struct suite *u = suite_load(path, &d);
    check_named(in_folder ? NULL : u, &d);
    int r = d.errors ? EXIT_USAGE_ERROR : 0;
    fputs(buf_str(&d.out), stderr);
    for (size_t i = 0; u && !in_folder && i < u->n && r == 0; i++)
        r = add(f, verb, arena_strdup(&f->arena, u->files[i]), false, deep + 1);
    if (!u && r == 0)
        r = add_file(f, verb, path);
    suite_free(u);
    diagnostics_fini(&d);
    return r;
}

int files_add(struct scenario_files *f, const struct verb *verb, const char *path) {
    size_t before = f->n;
    int r = add(f, verb, path, false, 0);
    if (r || f->n > before)
        return r;
    return verb_usage_error(verb,
                            "%s: there is no scenario in it; scenarios are files that end in "
                            ".yaml",
                            path);
}

void files_fini(struct scenario_files *f) {
    arena_fini(&f->arena);
}
