#include "harness/play/remains.h"

#include "agent/sys/file.h"
#include "harness/run/presence.h"

#include <dirent.h>

/* What --keep has kept was meant to stay. */
static bool is_left(const char *dir) {
    struct arena a = {0};
    struct presence p;
    char scratch[4400];
    snprintf(scratch, sizeof(scratch), "%s/scratch", dir);
    bool left = file_exists(scratch) && presence_read(dir, &a, &p, NULL) == 0 && !p.keep &&
                presence_state(&p) == PRESENCE_OVER;
    arena_fini(&a);
    return left;
}

void remains_tell(const char *verb, const char *folder, FILE *out) {
    char dir[4200], first[4200] = "", more[40] = "";
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        for (int control = 0; control < 2 && e->d_name[0] != '.'; control++) {
            snprintf(dir, sizeof(dir), "%.3900s/%s%s", folder, e->d_name,
                     control ? "/control" : "");
            if (is_left(dir) && n++ == 0)
                snprintf(first, sizeof(first), "%s", dir);
        }
    if (d)
        closedir(d);
    if (n > 1)
        snprintf(more, sizeof(more), " (and %zu more)", n - 1);
    if (n)
        fprintf(out,
                "rankquake %s: a harness that was killed has left %s/scratch behind%s; rankquake "
                "clean %s removes it\n",
                verb, first, more, folder);
}
