#include "scenarios/jobs/ranktrain/mode/mode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MODE_ROW(name) &mode_##name,
static const struct mode *const table[] = {MODES(MODE_ROW)};
#undef MODE_ROW
enum { TABLE = sizeof(table) / sizeof(*table) };

const struct mode *mode_find(const char *name, struct err *err) {
    char names[128];
    size_t n = 0;
    for (size_t i = 0; i < TABLE; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    for (size_t i = 0; i < TABLE && n < sizeof(names); i++)
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", table[i]->name);
    err_say(err, -EINVAL, "--mode=%s is not known: there are %s", name, names);
    return NULL;
}
