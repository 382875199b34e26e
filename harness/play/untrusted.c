#include "harness/play/untrusted.h"

#include "base/str.h"
#include "harness/play/selection.h"

#include <string.h>

extern char **environ;

static const char *value_of(const char *const *sets, const char *key) {
    const char *found = NULL;
    size_t n = strlen(key);
    for (; *sets; sets++)
        if (strncmp(*sets, key, n) == 0 && (*sets)[n] == '=')
            found = *sets + n + 1;
    return found;
}

const char **untrusted_sets(struct arena *a, const struct verb *v, const char **sets) {
    const char *isolation = value_of(sets, "cluster.isolation");
    static const char *const forced[] = {"cluster.isolation=namespaces", "job.writes=undone", NULL};
    if (isolation && !str_eq(isolation, "namespaces")) {
        verb_usage_error(v, "--untrusted needs namespaces: nodes that are processes have all your "
                            "rights on this host");
        return NULL;
    }
    if (!value_of(sets, "cluster.rootfs")) {
        verb_usage_error(v, "--untrusted needs --rootfs DIR, a root file system for the nodes: "
                            "without one a job reads and writes this host's files as you do");
        return NULL;
    }
    return sets_join(a, sets, forced);
}

static bool is_harmless(const char *entry) {
    static const char *const names[] = {
        "PATH", "HOME",     "USER",     "LOGNAME",        "SHELL",           "TERM",
        "LANG", "LANGUAGE", "TZ",       "TMPDIR",         "COLUMNS",         "LINES",
        "TEMP", "TMP",      "NO_COLOR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH",
        NULL};
    size_t n = strcspn(entry, "=");
    for (size_t i = 0; names[i]; i++)
        if (strlen(names[i]) == n && strncmp(names[i], entry, n) == 0)
            return true;
    return str_starts(entry, "LC_") || str_starts(entry, "RANKQUAKE_");
}

void untrusted_clear_environment(void) {
    size_t n = 0;
    for (char **e = environ; *e; e++)
        if (is_harmless(*e))
            environ[n++] = *e;
    environ[n] = NULL;
}
