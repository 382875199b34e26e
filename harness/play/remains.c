#include "harness/play/remains.h"

#include "base/sys/printing.h"
#include "harness/run/presence.h"

#include <dirent.h>
#include <stdlib.h>

struct remains {
    char first[4200]; /* the run directory that was found first */
    size_t n;
};

/* What --keep has kept was meant to stay. */
static bool is_left(const struct folder *run) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    return folder_has(run, "scratch") && presence_read(run, &a, &p, NULL) == 0 && !p.keep &&
           presence_state(&p) == PRESENCE_OVER;
}

static void look(struct remains *m, const struct folder *run) {
    if (is_left(run) && m->n++ == 0)
        snprintf(m->first, sizeof(m->first), "%s", run->path);
}

static void look_with_control(struct remains *m, const struct folder *runs, const char *name) {
    struct folder run, control;
    if (!folder_has_directory(runs, name) || folder_enter(&run, runs, name, NULL) != 0)
        return;
    look(m, &run);
    if (folder_has_directory(&run, "control") &&
        folder_enter(&control, &run, "control", NULL) == 0) {
        look(m, &control);
        folder_close(&control);
    }
    folder_close(&run);
}

static void look_into(struct remains *m, const struct folder *runs) {
    TEXTS_FINI struct texts names = {0};
    folder_list(runs, ".", folder_is_shown, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        look_with_control(m, runs, names.v[i]);
    }
}

void remains_tell(const char *verb, const char *folder, FILE *out) {
    struct remains m = {0};
    struct folder runs;
    char more[40] = "";
    if (folder_open(&runs, folder, NULL) != 0)
        return;
    look_into(&m, &runs);
    folder_close(&runs);
    if (m.n > 1)
        snprintf(more, sizeof(more), " (and %zu more)", m.n - 1);
    if (m.n)
        printing_line(out,
                      "rankquake %s: a harness that was killed has left %s/scratch behind%s; "
                      "rankquake clean %s removes it",
                      verb, m.first, more, folder);
}
