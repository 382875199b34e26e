#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libnccl.so.2"
#define INSTALL                                                                                    \
    "install it (Debian's libnccl2, Python's nvidia-nccl-cu13), name it in NCCL_LIB, or "          \
    "use --dist-backend=tcp"

/* Where it lies when it is not in the loader's path: behind the value of the variable. */
static const struct place {
    const char *variable, *pattern;
} places[] = {
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/lib/python3*/dist-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/opt/*/lib/python3*/site-packages/nvidia/nccl/lib/" SONAME},
    {NULL, "/usr/local/cuda*/lib64/" SONAME},
    {NULL, "/usr/local/cuda*/lib/" SONAME},
};
enum { PLACES = sizeof(places) / sizeof(*places) };

const char *nccl_version_name(int version, char ret[24]) {
    int major = version / (version < 10000 ? 1000 : 10000);
    int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
    snprintf(ret, 24, "%d.%d.%d", major, minor, version % 100);
    return ret;
}

const char *nccl_result_name(int result) {
    static const char *const names[] = {
        "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
        "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
    return result >= 0 && result <= NCCL_IN_PROGRESS ? names[result] : "an unknown result";
}

struct nccl_config nccl_config_unblocking(void) {
    return (struct nccl_config){
        .size = sizeof(struct nccl_config), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_OLDEST};
}

/* Opens the first file of a place that can be opened. */
static void *open_in(const struct place *p, char ret_path[PATH_MAX]) {
    char pattern[PATH_MAX];
    const char *value = p->variable ? getenv(p->variable) : "";
    void *handle = NULL;
    glob_t found;
    if (!value || snprintf(pattern, sizeof(pattern), "%s%s", value, p->pattern) >= PATH_MAX)
        return NULL;
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !handle; i++) {
        snprintf(ret_path, PATH_MAX, "%s", found.gl_pathv[i]);
        handle = dlopen(ret_path, RTLD_NOW | RTLD_LOCAL);
    }
    globfree(&found);
    return handle;
}

static int find(void **ret, char ret_path[PATH_MAX], struct err *err) {
    const char *named = getenv("NCCL_LIB");
    snprintf(ret_path, PATH_MAX, "%s", named && *named ? named : SONAME);
    *ret = dlopen(ret_path, RTLD_NOW | RTLD_LOCAL);
    if (!*ret && named && *named)
        return err_say(err, -ENOENT, "NCCL_LIB=%s cannot be loaded: %s", named, dlerror());
    for (size_t i = 0; i < PLACES && !*ret; i++)
        *ret = open_in(&places[i], ret_path);
    if (!*ret)
        return err_say(err, -ENOENT,
                       "there is no NCCL here: " SONAME
                       " is neither in the loader's path nor where "
                       "the CUDA toolkit and Python's packages leave it; " INSTALL);
    return 0;
}

static int look_up(void *handle, struct nccl_api *a, struct err *err) {
    const struct symbol {
        const char *name;
        void *at;
    } symbols[] = {
        {"ncclGetVersion", &a->GetVersion},
        {"ncclGetUniqueId", &a->GetUniqueId},
        {"ncclCommInitRankConfig", &a->CommInitRankConfig},
        {"ncclCommGetAsyncError", &a->CommGetAsyncError},
        {"ncclAllReduce", &a->AllReduce},
        {"ncclBroadcast", &a->Broadcast},
        {"ncclReduce", &a->Reduce},
        {"ncclReduceScatter", &a->ReduceScatter},
        {"ncclAllGather", &a->AllGather},
        {"ncclSend", &a->Send},
        {"ncclRecv", &a->Recv},
        {"ncclGroupStart", &a->GroupStart},
        {"ncclGroupEnd", &a->GroupEnd},
        {"ncclCommFinalize", &a->CommFinalize},
        {"ncclCommDestroy", &a->CommDestroy},
        {"ncclCommAbort", &a->CommAbort},
        {"ncclGetLastError", &a->GetLastError},
    };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol)
            return err_say(err, -ENOEXEC,
                           "%s is no NCCL of version 2.14 or newer: it has no %s; " INSTALL,
                           a->path, symbols[i].name);
        memcpy(symbols[i].at, &symbol, sizeof(symbol));
    }
    return 0;
}

/* Asked before anything else is looked up: an old one lacks functions, and is better called old. */
static int ask_version(void *handle, struct nccl_api *a, struct err *err) {
    char name[24];
    void *symbol = dlsym(handle, "ncclGetVersion");
    if (!symbol)
        return err_say(err, -ENOEXEC, "%s is no NCCL: it has no ncclGetVersion; " INSTALL, a->path);
    memcpy(&a->GetVersion, &symbol, sizeof(symbol));
    Dl_info found; /* the loader has followed its own path */
    if (dladdr(symbol, &found) && found.dli_fname && strchr(found.dli_fname, '/'))
        snprintf(a->path, sizeof(a->path), "%s", found.dli_fname);
    int r = a->GetVersion(&a->version);
    if (r != NCCL_SUCCESS)
        return err_say(err, -ENOEXEC, "%s: ncclGetVersion: %s", a->path, nccl_result_name(r));
    nccl_version_name(a->version, name);
    if (a->version >= 30000)
        return err_say(
            err, -ENOEXEC,
            "%s is NCCL %s: ranktrain speaks version 2, from 2.14 on; name such a one in "
            "NCCL_LIB",
            a->path, name);
    if (a->version < NCCL_OLDEST)
        return err_say(
            err, -ENOEXEC,
            "%s is NCCL %s: before 2.14 a communicator cannot be given up when a peer is "
            "gone; " INSTALL,
            a->path, name);
    return 0;
}

int nccl_api_load(struct nccl_api *ret, struct err *err) {
    struct nccl_api a = {0};
    void *handle;
    int r = find(&handle, a.path, err);
    if (r == 0) {
        r = ask_version(handle, &a, err);
        if (r == 0)
            r = look_up(handle, &a, err);
        if (r < 0)
            dlclose(handle);
    }
    if (r == 0)
        *ret = a;
    return r;
}
