#include "base/sys/nvml.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* nvmlReturn_t, as far as it is told apart. */
enum {
    SUCCESS = 0,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    INSUFFICIENT_SIZE = 7,
};
static const unsigned long long NOT_AVAILABLE = ~0ULL;

struct nvml_memory {
    unsigned long long total, free, used;
};

/* nvmlProcessInfo_v2_t; the first function for it is the _v2, the _v3 fills the same. */
struct nvml_process_info {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

/* What it is called here, in the library, in an older one; what it returns and takes. */
#define FUNCTIONS(X)                                                                               \
    X(init, "nvmlInit_v2", NULL, int, (void))                                                      \
    X(shutdown, "nvmlShutdown", NULL, int, (void))                                                 \
    X(error_string, "nvmlErrorString", NULL, const char *, (int))                                  \
    X(get_driver, "nvmlSystemGetDriverVersion", NULL, int, (char *, unsigned))                     \
    X(get_count, "nvmlDeviceGetCount_v2", NULL, int, (unsigned *))                                 \
    X(get_handle, "nvmlDeviceGetHandleByIndex_v2", NULL, int, (unsigned, void **))                 \
    X(get_uuid, "nvmlDeviceGetUUID", NULL, int, (void *, char *, unsigned))                        \
    X(get_name, "nvmlDeviceGetName", NULL, int, (void *, char *, unsigned))                        \
    X(get_memory, "nvmlDeviceGetMemoryInfo", NULL, int, (void *, struct nvml_memory *))            \
    X(get_mode, "nvmlDeviceGetComputeMode", NULL, int, (void *, unsigned *))                       \
    X(get_processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                    \
      "nvmlDeviceGetComputeRunningProcesses_v2", int,                                              \
      (void *, unsigned *, struct nvml_process_info *))

struct nvml {
    void *handle;
    size_t n;
    void *devices[NVML_DEVICES_MAX];
    char driver[96];
#define FIELD(name, symbol, older, type, arguments) type(*name) arguments;
    FUNCTIONS(FIELD)
#undef FIELD
};

static int failed(const struct nvml *n, int code, const char *what, struct err *err) {
    return err_say(err, -ENODEV, "NVIDIA's driver: %s: %s (%d); nvidia-smi tells more", what,
                   n->error_string(code), code);
}

/* The newest of the names that the library has. */
static int find(const struct nvml *n, void *function, const char *name, const char *older,
                struct err *err) {
    void *symbol = dlsym(n->handle, name);
    if (!symbol && older)
        symbol = dlsym(n->handle, older);
    if (!symbol)
        return err_say(err, -ENOSYS,
                       "NVIDIA's libnvidia-ml.so.1 has no %s: the driver is too old to be asked",
                       older ? older : name);
    memcpy(function, &symbol, sizeof(symbol));
    return 0;
}

static int find_all(struct nvml *n, struct err *err) {
    int r = 0;
#define FIND(name, symbol, older, type, arguments)                                                 \
    r = r ? r : find(n, &n->name, symbol, older, err);
    FUNCTIONS(FIND)
#undef FIND
    return r;
}

/* The loader does not look where WSL has it, so that is tried first. */
static void *load(const char **ret_why) {
    const char *given = getenv("RANKQUAKE_NVML"), *name = given ? given : "libnvidia-ml.so.1";
    void *handle = given ? NULL : dlopen("/usr/lib/wsl/lib/libnvidia-ml.so.1", RTLD_NOW);
    if (!handle)
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    *ret_why = handle ? NULL : dlerror();
    return handle;
}

static int ask_driver(struct nvml *n, struct err *err) {
    unsigned count = 0;
    int code = n->get_count(&count);
    if (code != SUCCESS)
        return failed(n, code, "count the devices", err);
    if (n->get_driver(n->driver, sizeof(n->driver)) != SUCCESS)
        *n->driver = '\0';
    for (unsigned i = 0; i < count && n->n < NVML_DEVICES_MAX; i++) {
        code = n->get_handle(i, &n->devices[n->n]);
        if (code != SUCCESS)
            return failed(n, code, "open a device", err);
        n->n++;
    }
    return 0;
}

static int open_all(struct nvml *n, struct err *err) {
    const char *why;
    n->handle = load(&why);
    if (!n->handle)
        return err_say(err, -ENOENT, "no driver of NVIDIA's here (%s)", why);
    int r = find_all(n, err);
    if (r)
        return r;
    int code = n->init();
    if (code != SUCCESS)
        r = failed(n, code, "begin", err);
    else if ((r = ask_driver(n, err)) != 0)
        n->shutdown();
    return r;
}

struct nvml *nvml_open(struct err *err) {
    struct nvml *n = mem_new(struct nvml);
    if (open_all(n, err) == 0)
        return n;
    if (n->handle)
        dlclose(n->handle);
    free(n);
    return NULL;
}

struct nvml *nvml_close(struct nvml *n) {
    if (n) {
        n->shutdown();
        dlclose(n->handle);
        free(n);
    }
    return NULL;
}

size_t nvml_count(const struct nvml *n) {
    return n->n;
}

const char *nvml_driver(const struct nvml *n) {
    return n->driver;
}

int nvml_device(const struct nvml *n, size_t i, struct nvml_device *ret, struct err *err) {
    struct nvml_device d = {.index = (int)i, .memory = -1, .shareable = true};
    struct nvml_memory memory;
    unsigned mode;
    char what[64];
    snprintf(what, sizeof(what), "name device %zu", i);
    int code = n->get_uuid(n->devices[i], d.uuid, sizeof(d.uuid));
    if (code == SUCCESS)
        code = n->get_name(n->devices[i], d.name, sizeof(d.name));
    if (code != SUCCESS)
        return failed(n, code, what, err);
    if (n->get_memory(n->devices[i], &memory) == SUCCESS)
        d.memory = (int64_t)memory.total;
    if (n->get_mode(n->devices[i], &mode) == SUCCESS)
        d.shareable = mode == 0;
    *ret = d;
    return 0;
}

int nvml_memory_used(const struct nvml *n, size_t i, int64_t *ret, struct err *err) {
    struct nvml_memory memory;
    int code = n->get_memory(n->devices[i], &memory);
    if (code != SUCCESS)
        return failed(n, code, "tell the memory in use", err);
    *ret = (int64_t)memory.used;
    return 0;
}

int nvml_processes(const struct nvml *n, size_t i, struct nvml_process *ret, size_t *ret_n,
                   struct err *err) {
    struct nvml_process_info found[NVML_PROCESSES_MAX];
    unsigned count = NVML_PROCESSES_MAX;
    int code = n->get_processes(n->devices[i], &count, found);
    if (code == NOT_SUPPORTED || code == NO_PERMISSION)
        return err_say(err, -ENOTSUP, "NVIDIA's driver does not tell who uses a device: %s (%d)",
                       n->error_string(code), code);
    if (code == INSUFFICIENT_SIZE)
        count = NVML_PROCESSES_MAX;
    else if (code != SUCCESS)
        return failed(n, code, "list the processes on a device", err);
    for (unsigned k = 0; k < count; k++)
        ret[k] = (struct nvml_process){
            .pid = (pid_t)found[k].pid,
            .bytes = found[k].used == NOT_AVAILABLE ? -1 : (int64_t)found[k].used,
        };
    *ret_n = count;
    return 0;
}

/* ---- how a device fares: functions that an older library may lack ---- */

enum { UNCORRECTED = 1, SINCE_LOADED = 0, LINKS_MAX = 18 };

static void take_links(const struct nvml *n, void *device, struct nvml_health *ret) {
    int (*state)(void *, unsigned, unsigned *) = NULL;
    *(void **)&state = dlsym(n->handle, "nvmlDeviceGetNvLinkState");
    for (unsigned link = 0; state && link < LINKS_MAX; link++) {
        unsigned on = 0;
        if (state(device, link, &on) != SUCCESS)
            continue; /* it has no such link */
        if (ret->links_up < 0)
            ret->links_up = ret->links_down = 0;
        *(on ? &ret->links_up : &ret->links_down) += 1;
    }
}

static void take_rows(const struct nvml *n, void *device, struct nvml_health *ret) {
    int (*rows)(void *, unsigned *, unsigned *, unsigned *, unsigned *) = NULL;
    unsigned corrected, uncorrected, pending, failure;
    *(void **)&rows = dlsym(n->handle, "nvmlDeviceGetRemappedRows");
    if (!rows || rows(device, &corrected, &uncorrected, &pending, &failure) != SUCCESS)
        return;
    ret->remap_pending = pending != 0;
    ret->remap_failed = failure != 0;
}

static void take_lanes(const struct nvml *n, void *device, struct nvml_health *ret) {
    int (*now)(void *, unsigned *) = NULL, (*most)(void *, unsigned *) = NULL;
    unsigned lanes, lanes_max;
    *(void **)&now = dlsym(n->handle, "nvmlDeviceGetCurrPcieLinkWidth");
    *(void **)&most = dlsym(n->handle, "nvmlDeviceGetMaxPcieLinkWidth");
    if (!now || !most || now(device, &lanes) != SUCCESS || most(device, &lanes_max) != SUCCESS)
        return;
    ret->lanes = lanes;
    ret->lanes_max = lanes_max;
}

void nvml_health(const struct nvml *n, size_t i, struct nvml_health *ret) {
    int (*ecc)(void *, int, int, unsigned long long *) = NULL;
    int (*reasons)(void *, unsigned long long *) = NULL;
    unsigned long long v;
    *(void **)&ecc = dlsym(n->handle, "nvmlDeviceGetTotalEccErrors");
    *(void **)&reasons = dlsym(n->handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *ret = (struct nvml_health){-1, -1, -1, -1, -1, -1, -1, -1};
    if (ecc && ecc(n->devices[i], UNCORRECTED, SINCE_LOADED, &v) == SUCCESS)
        ret->ecc_uncorrected = (int64_t)v;
    if (reasons && reasons(n->devices[i], &v) == SUCCESS)
        ret->slowed_by = (int64_t)v;
    take_links(n, n->devices[i], ret);
    take_rows(n, n->devices[i], ret);
    take_lanes(n, n->devices[i], ret);
}

/* ---- the files of the driver ---- */

static bool is_driver_file(int dir, const char *name) {
    char path[4096], prefix[300];
    const char *dev = getenv("RANKQUAKE_DEV");
    int n = snprintf(prefix, sizeof(prefix), "%.280s/nvidia", dev ? dev : "/dev");
    ssize_t len = readlinkat(dir, name, path, sizeof(path) - 1);
    return len > n && strncmp(path, prefix, (size_t)n) == 0;
}

int nvml_holds_driver(pid_t pid) {
    char path[64];
    int holds = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *d = opendir(path);
    if (!d)
        return -errno;
    for (struct dirent *e; !holds && (e = readdir(d)) != NULL;)
        holds = e->d_name[0] != '.' && is_driver_file(dirfd(d), e->d_name);
    return holds;
}
