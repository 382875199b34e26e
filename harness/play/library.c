#include "harness/play/library.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *library_folder(struct arena *a) {
    static const char *const places[] = {"../../share/rankquake", "../..", "../../..", NULL};
    char own[PATH_MAX], real[PATH_MAX];
    file_own_folder(own, sizeof(own));
    for (size_t i = 0; places[i]; i++)
        if (file_exists(arena_printf(a, "%s/%s/scenarios/smoke.yaml", own, places[i])) &&
            realpath(arena_printf(a, "%s/%s", own, places[i]), real))
            return arena_strdup(a, real);
    return NULL;
}

static bool leads_up(const char *name) {
    return *name == '/' || str_starts(name, "../") || strstr(name, "/../");
}

const char *library_find(struct arena *a, const char *name) {
    const char *folder = library_folder(a);
    if (str_starts(name, "scenarios/"))
        name += strlen("scenarios/");
    if (!folder || !*name || leads_up(name))
        return NULL;
    const char *plain = arena_printf(a, "%s/scenarios/%s", folder, name);
    const char *file = arena_printf(a, "%s.yaml", plain);
    return file_exists(file) ? file : file_exists(plain) ? plain : NULL;
}

void library_list(struct texts *ret) {
    ARENA_FINI struct arena a = {0};
    const char *folder = library_folder(&a);
    glob_t g = {0};
    if (!folder)
        return;
    glob(arena_printf(&a, "%s/scenarios/*.yaml", folder), 0, NULL, &g);
    glob(arena_printf(&a, "%s/scenarios/*/*.yaml", folder), GLOB_APPEND, NULL, &g);
    for (size_t i = 0; i < g.gl_pathc; i++)
        texts_add(ret, "%s", g.gl_pathv[i] + strlen(folder) + 1);
    globfree(&g);
}
