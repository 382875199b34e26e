#include "harness/provider/providers.h"

#include "base/str.h"
#include "harness/provider/provider.h"

#include <stddef.h>
#include <string.h>

#define X(name) extern const struct provider provider_##name;
PROVIDERS(X)
#undef X

const struct provider *const providers[] = {
#define X(name) &provider_##name,
    PROVIDERS(X)
#undef X
        NULL};

const char *provider_rankquake(const struct provider_wish *w, struct arena *a) {
    const char *slash = strrchr(w->program, '/');
    return arena_printf(a, "%.*srankquake", slash ? (int)(slash - w->program) + 1 : 0, w->program);
}

const struct provider *provider_find(const char *name) {
    for (size_t i = 0; providers[i]; i++)
        if (str_eq(providers[i]->name, name))
            return providers[i];
    return NULL;
}
