#include "harness/play/files.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/plan/plan.h"
#include "harness/play/library.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUITES_DEEP = 8 };

/* Where a file comes from. */
struct files_origin {
    const char *within; /* as scenario_files.within */
    bool in_folder;
    int deep; /* of suites */
};

static int add(struct scenario_files *f, const struct verb *verb, const char *path,
               struct files_origin from);

static int only_scenarios(const struct dirent *d) {
    return !strchr("._", d->d_name[0]) && (str_ends(d->d_name, ".yaml") || d->d_type == DT_DIR);
}

static int add_folder(struct scenario_files *f, const struct verb *verb, const char *path,
                      const char *within) {
    struct dirent **names;
    int n = scandir(path, &names, only_scenarios, alphasort), r = 0;
    if (n < 0)
        return verb_usage_error(verb, "read the folder %s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = add(f, verb, arena_printf(&f->arena, "%s/%s", path, names[i]->d_name),
                    (struct files_origin){within, true, 0});
        free(names[i]);
    }
    free(names);
    return r;
}

static int add_file(struct scenario_files *f, const struct verb *verb, const char *file,
                    const char *within) {
    if (f->n == FILES_MAX)
        return verb_usage_error(verb, "more than %d scenario files", FILES_MAX);
    f->within[f->n] = within;
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

/* A link in a folder may lead back into it, or anywhere. */
static bool is_folder(const char *path, bool in_folder) {
    struct stat st;
    return (in_folder ? lstat(path, &st) : stat(path, &st)) == 0 && S_ISDIR(st.st_mode);
}

static bool leads_out(const char *path, const char *within) {
    char real[PATH_MAX];
    return within && realpath(path, real) && !plan_is_below(real, within);
}

/* A suite stands for what it names. In a folder it is left out: its scenarios are there. */
static int add(struct scenario_files *f, const struct verb *verb, const char *path,
               struct files_origin from) {
    struct diagnostics d = {.within = from.within};
    if (is_folder(path, from.in_folder))
        return leads_out(path, from.within)
                   ? verb_usage_error(verb, "%s leads out of %s, and nothing is followed there",
                                      path, from.within)
                   : add_folder(f, verb, path, from.within);
    if (from.deep > SUITES_DEEP)
        return verb_usage_error(verb,
                                "%s: suites name suites more than %d deep; does one name itself?",
                                path, SUITES_DEEP);
    struct suite *u = suite_load(path, &d);
    check_named(from.in_folder ? NULL : u, &d);
    int r = d.errors ? EXIT_USAGE_ERROR : 0;
    fputs(buf_str(&d.out), stderr);
    for (size_t i = 0; u && !from.in_folder && i < u->n && r == 0; i++)
        r = add(f, verb, arena_strdup(&f->arena, u->files[i]),
                (struct files_origin){from.within, false, from.deep + 1});
    if (!u && r == 0)
        r = add_file(f, verb, path, from.within);
    suite_free(u);
    diagnostics_fini(&d);
    return r;
}

/* What cannot be found is said when it is read. */
static const char *root_of(struct scenario_files *f, const char *path) {
    char root[PATH_MAX];
    if (f->trusted || !source_root(path, is_folder(path, false), root, sizeof(root)))
        return NULL;
    return arena_strdup(&f->arena, root);
}

/* What is not there may be the name of a scenario that came with the program. */
static const char *or_of_library(struct scenario_files *f, const char *path) {
    const char *found = file_exists(path) ? NULL : library_find(&f->arena, path);
    return found ? found : path;
}

int files_add(struct scenario_files *f, const struct verb *verb, const char *path) {
    size_t before = f->n;
    path = or_of_library(f, path);
    int r = add(f, verb, path, (struct files_origin){root_of(f, path), false, 0});
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
