/* A libnvidia-ml.so.1 for tests: devices that are not there, told by a file.
 *
 * RANKQUAKE_FAKE_NVML names the file; it is read again at each call, so a test changes what is seen
 * by writing it anew. One word and its values a line:
 *
 *     driver VERSION
 *     device UUID TOTAL_MB USED_MB MODE NAME   MODE: nvmlComputeMode_t, 0 is Default
 *     process DEVICE PID MB                    MB -1: not told
 *     holders MB                               each process that has $RANKQUAKE_DEV/nvidiaN open
 *                                              computes on device N and has so much there
 *     health DEVICE KEY VALUE              KEY: ecc, slowed, links_up, links_down, remap_pending,
 *                                          remap_failed, lanes, lanes_max; those that are not
 *                                          told are not supported
 *     error FUNCTION CODE                      FUNCTION without "nvml": "Init_v2"
 *     hang FUNCTION                            it never returns
 *
 * Without the file the driver is not loaded (error 9). It lists processes as the caller's /proc
 * numbers them, as the driver does for a caller in the first pid namespace. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    TOO_SMALL = 7,
    NOT_LOADED = 9,
    DEVICES = 64,
    PROCESSES = 1024
};
static const unsigned long long MB = 1 << 20;

struct memory {
    unsigned long long total, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
enum health {
    ECC,
    SLOWED,
    LINKS_UP,
    LINKS_DOWN,
    REMAP_PENDING,
    REMAP_FAILED,
    LANES,
    LANES_MAX,
    KEYS
};
static const char *const keys[KEYS] = {"ecc",           "slowed",       "links_up", "links_down",
                                       "remap_pending", "remap_failed", "lanes",    "lanes_max"};
struct device {
    char uuid[96], name[96];
    long total, used;
    unsigned mode;
    long health[KEYS];
};
struct state {
    char driver[96];
    struct device devices[DEVICES];
    struct {
        int device;
        long pid, mb;
    } processes[PROCESSES];
    int devices_n, processes_n;
    long holders_mb; /* 0: nobody is looked for */
    int error;       /* of the function that is called */
};

/* ---- the file ---- */

static void read_line(struct state *s, const char *function, const char *line) {
    char name[96];
    int code, device;
    long pid, mb;
    struct device d = {.health = {-1, -1, -1, -1, -1, -1, -1, -1}};
    if (sscanf(line, "driver %95s", s->driver) == 1)
        return;
    if (sscanf(line, "device %95s %ld %ld %u %95[^\n]", d.uuid, &d.total, &d.used, &d.mode,
               d.name) == 5 &&
        s->devices_n < DEVICES)
        s->devices[s->devices_n++] = d;
    else if (sscanf(line, "health %d %95s %ld", &device, name, &mb) == 3 && device >= 0 &&
             device < s->devices_n) {
        for (int key = 0; key < KEYS; key++)
            if (strcmp(name, keys[key]) == 0)
                s->devices[device].health[key] = mb;
    } else if (sscanf(line, "process %d %ld %ld", &device, &pid, &mb) == 3 &&
               s->processes_n < PROCESSES) {
        s->processes[s->processes_n].device = device;
        s->processes[s->processes_n].pid = pid;
        s->processes[s->processes_n++].mb = mb;
    } else if (sscanf(line, "hang %95s", name) == 1 && strcmp(name, function) == 0)
        pause();
    else if (sscanf(line, "error %95s %d", name, &code) == 2 && strcmp(name, function) == 0)
        s->error = code;
    else
        (void)!sscanf(line, "holders %ld", &s->holders_mb);
}

static int read_state(struct state *s, const char *function) {
    const char *path = getenv("RANKQUAKE_FAKE_NVML");
    char line[512];
    memset(s, 0, sizeof(*s));
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f)
        return NOT_LOADED;
    while (fgets(line, sizeof(line), f))
        read_line(s, function, line);
    fclose(f);
    return s->error;
}

/* ---- who holds the file of a device ---- */

static int holds(const char *pid, const char *file) {
    char path[300], target[4096];
    int found = 0;
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(path, sizeof(path), "/proc/%s/fd/%.20s", pid, e->d_name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strcmp(target, file) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

static void add_holders(struct state *s, int device) {
    char file[300];
    const char *dev = getenv("RANKQUAKE_DEV");
    snprintf(file, sizeof(file), "%.200s/nvidia%d", dev ? dev : "/dev", device);
    DIR *d = s->holders_mb ? opendir("/proc") : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !holds(e->d_name, file) ||
            s->processes_n == PROCESSES)
            continue;
        s->processes[s->processes_n].device = device;
        s->processes[s->processes_n].pid = atol(e->d_name);
        s->processes[s->processes_n++].mb = s->holders_mb;
    }
    if (d)
        closedir(d);
}

/* ---- the functions ---- */

static int device_of(struct state *s, const char *function, void *handle, int *ret) {
    int r = read_state(s, function);
    *ret = (int)(intptr_t)handle - 1;
    return r ? r : *ret < 0 || *ret >= s->devices_n ? INVALID : OK;
}

static int put_text(char *to, unsigned size, const char *text) {
    if (strlen(text) >= size)
        return TOO_SMALL;
    strcpy(to, text);
    return OK;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void) {
    struct state s;
    return read_state(&s, "Init_v2");
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void) {
    return OK;
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code) {
    switch (code) {
    case OK:
        return "Success";
    case NOT_LOADED:
        return "Driver Not Loaded";
    case 15:
        return "GPU is lost";
    case 18:
        return "Driver/library version mismatch";
    default:
        return "Unknown Error";
    }
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    struct state s;
    int r = read_state(&s, "SystemGetDriverVersion");
    return r ? r : put_text(version, size, s.driver);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    struct state s;
    int r = read_state(&s, "DeviceGetCount_v2");
    if (r == OK)
        *count = (unsigned)s.devices_n;
    return r;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    struct state s;
    int i, r = device_of(&s, "DeviceGetHandleByIndex_v2", (void *)(intptr_t)(index + 1), &i);
    if (r == OK)
        *handle = (void *)(intptr_t)(index + 1);
    return r;
}

EXPORT int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size);
EXPORT int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size) {
    struct state s;
    int i, r = device_of(&s, "DeviceGetUUID", handle, &i);
    return r ? r : put_text(uuid, size, s.devices[i].uuid);
}

EXPORT int nvmlDeviceGetName(void *handle, char *name, unsigned size);
EXPORT int nvmlDeviceGetName(void *handle, char *name, unsigned size) {
    struct state s;
    int i, r = device_of(&s, "DeviceGetName", handle, &i);
    return r ? r : put_text(name, size, s.devices[i].name);
}

EXPORT int nvmlDeviceGetComputeMode(void *handle, unsigned *mode);
EXPORT int nvmlDeviceGetComputeMode(void *handle, unsigned *mode) {
    struct state s;
    int i, r = device_of(&s, "DeviceGetComputeMode", handle, &i);
    if (r == OK)
        *mode = s.devices[i].mode;
    return r;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory);
EXPORT int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory) {
    struct state s;
    int i, r = device_of(&s, "DeviceGetMemoryInfo", handle, &i);
    if (r)
        return r;
    add_holders(&s, i);
    long used = s.devices[i].used;
    for (int k = 0; k < s.processes_n; k++)
        used += s.processes[k].device == i && s.processes[k].mb > 0 ? s.processes[k].mb : 0;
    memory->total = (unsigned long long)s.devices[i].total * MB;
    memory->used = (unsigned long long)used * MB;
    memory->free = memory->total - memory->used;
    return OK;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count,
                                                   struct process *list);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count,
                                                   struct process *list) {
    struct state s;
    unsigned n = 0;
    int i, r = device_of(&s, "DeviceGetComputeRunningProcesses_v3", handle, &i);
    if (r)
        return r;
    add_holders(&s, i);
    for (int k = 0; k < s.processes_n; k++) {
        if (s.processes[k].device != i)
            continue;
        if (n < *count)
            list[n] = (struct process){
                (unsigned)s.processes[k].pid,
                s.processes[k].mb < 0 ? ~0ULL : (unsigned long long)s.processes[k].mb * MB, 0, 0};
        n++;
    }
    r = n > *count ? TOO_SMALL : OK;
    *count = n;
    return r;
}

/* ---- how a device fares ---- */

static int health_of(const char *function, void *handle, enum health key, long *ret) {
    struct state s;
    int i, r = device_of(&s, function, handle, &i);
    *ret = r ? -1 : s.devices[i].health[key];
    return r ? r : *ret < 0 ? NOT_SUPPORTED : OK;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter,
                                       unsigned long long *count);
EXPORT int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter,
                                       unsigned long long *count) {
    long v;
    int r = health_of("DeviceGetTotalEccErrors", handle, ECC, &v);
    if (type != 1 || counter != 0) /* uncorrected, since the driver was loaded */
        return INVALID;
    *count = r ? 0 : (unsigned long long)v;
    return r;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons) {
    long v;
    int r = health_of("DeviceGetCurrentClocksThrottleReasons", handle, SLOWED, &v);
    *reasons = r ? 0 : (unsigned long long)v;
    return r;
}

EXPORT int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *on);
EXPORT int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *on) {
    long up, down;
    if (health_of("DeviceGetNvLinkState", handle, LINKS_UP, &up) ||
        health_of("DeviceGetNvLinkState", handle, LINKS_DOWN, &down) || link >= up + down)
        return NOT_SUPPORTED;
    *on = link < up;
    return OK;
}

EXPORT int nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failure);
EXPORT int nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failure) {
    long waits, failed;
    int r = health_of("DeviceGetRemappedRows", handle, REMAP_PENDING, &waits);
    r = r ? r : health_of("DeviceGetRemappedRows", handle, REMAP_FAILED, &failed);
    if (r)
        return r;
    *corrected = *uncorrected = 0;
    *pending = (unsigned)waits;
    *failure = (unsigned)failed;
    return OK;
}

static int lanes_of(const char *function, void *handle, enum health key, unsigned *ret) {
    long v;
    int r = health_of(function, handle, key, &v);
    *ret = r ? 0 : (unsigned)v;
    return r;
}

EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *handle, unsigned *lanes);
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *handle, unsigned *lanes) {
    return lanes_of("DeviceGetCurrPcieLinkWidth", handle, LANES, lanes);
}

EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *handle, unsigned *lanes);
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *handle, unsigned *lanes) {
    return lanes_of("DeviceGetMaxPcieLinkWidth", handle, LANES_MAX, lanes);
}
