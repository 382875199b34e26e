#include "agent/tls/tls.h"

#include "base/sys/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Once for the process, and never closed. */
static const struct tls_module *module;

static int load_file(const char *path, struct err *err) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_say(err, -ENOEXEC,
                       "%s cannot be loaded (%s): install OpenSSL 3 (Debian, Ubuntu: apt install "
                       "libssl3), or build it again here (make)",
                       path, dlerror());
    const struct tls_module *found = dlsym(handle, TLS_SYMBOL);
    if (found && found->version == TLS_VERSION && found->libevent == event_get_version_number()) {
        module = found;
        return 0;
    }
    dlclose(handle);
    return err_say(err, -ENOEXEC,
                   "%s was not built with this rankrun, or not with its libevent: build both again "
                   "(make)",
                   path);
}

static int load(struct err *err) {
    char folder[PATH_MAX], beside[PATH_MAX];
    const char *named = getenv(TLS_VARIABLE);
    if (module)
        return 0;
    if (named && *named)
        return access(named, F_OK) == 0
                   ? load_file(named, err)
                   : err_say(err, -ENOEXEC, TLS_VARIABLE "=%s: there is no such file", named);
    file_own_folder(folder, sizeof(folder));
    int n = snprintf(beside, sizeof(beside), "%s/" TLS_FILE, folder);
    bool known = folder[0] == '/' && n < PATH_MAX;
    if (!known || access(beside, F_OK) < 0)
        return err_say(err, -ENOENT,
                       "this rankrun was built without TLS (there is no %s): install libssl-dev "
                       "and run make, or let something that speaks TLS stand before the store "
                       "(docs/torchrun.md)",
                       known ? beside : TLS_FILE);
    return load_file(beside, err);
}

struct tls *tls_new(const struct tls_files *files, struct err *err) {
    struct tls *t = load(err) < 0 ? NULL : module->open(files, err);
    if (!t)
        err_wrap(err, "TLS of the store: ");
    return t;
}

struct tls *tls_free(struct tls *t) {
    return t ? module->close(t) : NULL;
}

struct bufferevent *tls_accept(struct tls *t, struct event_base *base,
                               const struct tls_watch *watch) {
    return module->accept(t, base, watch);
}
