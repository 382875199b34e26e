/* visible: which of the host's paths must be seen in a node. A node has a /tmp, a /run and a
 * /dev/shm of its own; but the caller's directory, the run directory, the programs and whatever the
 * job's command line names may lie there, and are what they are everywhere. */
#include "harness/cluster/parts.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Follows links; what does not exist cannot be shown. The directories themselves are the node's. */
static void add(struct texts *p, const char *path) {
    char *real = path && *path ? realpath(path, NULL) : NULL;
    if (real &&
        (str_starts(real, "/tmp/") || str_starts(real, "/run/") || str_starts(real, "/dev/shm/")))
        texts_take(p, real);
    else
        free(real);
}

/* Where bin is that of one of Python's virtual environments: all of it, for the interpreter there is a link, and finds what belongs
 * to it by a file beside bin. */
static void add_environment_of(struct texts *p, const char *bin) {
    ARENA_FINI struct arena a = {0};
    if (file_exists(arena_printf(&a, "%s/../pyvenv.cfg", bin)))
        add(p, arena_printf(&a, "%s/..", bin));
}

/* The members of a list with colons. */
static void add_list(struct texts *p, const char *list) {
    ARENA_FINI struct arena a = {0};
    char **members = list ? str_split(&a, list, ':', NULL) : NULL;
    for (size_t i = 0; members && members[i]; i++)
        if (members[i][0] == '/') {
            add(p, members[i]);
            add_environment_of(p, members[i]);
        }
}

/* "train.py", "/tmp/train.py", "--data=/tmp/set". */
static void add_word(struct texts *p, const char *word) {
    const char *value = strchr(word, '='), *end = strrchr(word, '/');
    add(p, word);
    if (end && word[0] == '/') {
        char *folder = strndup(word, (size_t)(end - word));
        add_environment_of(p, folder);
        free(folder);
    }
    if (value)
        add(p, value + 1);
}

static void add_environment(struct texts *p) {
    static const char *const directories[] = {"HOME", "XDG_CACHE_HOME", "VIRTUAL_ENV",
                                              "CONDA_PREFIX", "PYTHONHOME"};
    static const char *const lists[] = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
        add(p, getenv(directories[i]));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        add_list(p, getenv(lists[i]));
}

struct texts visible_paths(const struct plan *plan, const char *dir) {
    struct texts p = {0};
    char *cwd = getcwd(NULL, 0);
    add(&p, cwd);
    free(cwd);
    add(&p, dir);
    char programs[PATH_MAX];
    add(&p, file_own_folder(programs, sizeof(programs)));
    add_environment(&p);
    const struct scenario *s = plan->scenario;
    for (size_t i = 0; s && i < s->job.run_n; i++)
        add_word(&p, s->job.run[i]);
    for (const char *const *w = s ? s->job.launcher_argv : NULL; w && *w; w++)
        add_word(&p, *w);
    for (size_t i = 0; s && i < s->job.env_n; i++)
        add_list(&p, s->job.env[i].value);
    return p;
}

/* One below another comes with it. */
static void add_shown(struct texts *p, char *real) {
    for (size_t i = 0; i < p->n; i++)
        if (plan_is_below(real, p->v[i])) {
            free(real);
            return;
        }
    texts_take(p, real);
}

struct texts visible_shown(const char *dir) {
    struct texts p = {0};
    char *cwd = getcwd(NULL, 0), *run = realpath(dir, NULL);
    if (cwd && plan_is_shown(cwd))
        add_shown(&p, realpath(cwd, NULL));
    if (run)
        add_shown(&p, run);
    free(cwd);
    return p;
}

struct texts visible_writable(const char *dir) {
    struct texts p = {0};
    char *cwd = getcwd(NULL, 0), *run = realpath(dir, NULL),
         *here = cwd ? realpath(cwd, NULL) : NULL;
    if (here)
        texts_take(&p, here);
    if (run)
        texts_take(&p, run);
    free(cwd);
    return p;
}
