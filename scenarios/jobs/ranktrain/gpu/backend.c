#include "scenarios/jobs/ranktrain/gpu/backend.h"

#include "base/sys/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_file(const char *path, const struct gpu_backend **ret, struct err *err) {
    const struct gpu_backend *(*get)(void);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_say(err, -ENOEXEC,
                       "the GPU library cannot be loaded (%s): build it again (make)", dlerror());
    void *symbol = dlsym(handle, GPU_SYMBOL);
    if (!symbol) {
        dlclose(handle);
        return err_say(err, -ENOEXEC, "%s is not a GPU library of ranktrain: it has no %s", path,
                       GPU_SYMBOL);
    }
    memcpy(&get, &symbol, sizeof(get));
    const struct gpu_backend *backend = get();
    int version = backend->version;
    if (version != GPU_VERSION) {
        dlclose(handle);
        return err_say(err, -ENOEXEC,
                       "%s is of version %d and ranktrain of version %d: build both again (make)",
                       path, version, GPU_VERSION);
    }
    *ret = backend;
    return 0;
}

int backend_open(const struct gpu_backend **ret, struct err *err) {
    char folder[PATH_MAX], beside[PATH_MAX];
    const char *named = getenv(BACKEND_VARIABLE);
    if (named && *named)
        return access(named, F_OK) == 0
                   ? open_file(named, ret, err)
                   : err_say(err, -ENOEXEC, BACKEND_VARIABLE "=%s: there is no such file", named);
    file_own_folder(folder, sizeof(folder));
    int n = snprintf(beside, sizeof(beside), "%s/" BACKEND_FILE, folder);
    bool known = folder[0] == '/' && n < PATH_MAX;
    if (!known || access(beside, F_OK) < 0)
        return err_say(err, -ENOENT,
                       "this ranktrain was built without CUDA (there is no %s): install the CUDA "
                       "toolkit (nvcc) and run make, or name the library in " BACKEND_VARIABLE,
                       known ? beside : BACKEND_FILE);
    return open_file(beside, ret, err);
}
