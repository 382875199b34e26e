/* For ci/gpu: what a killed process leaves on a GPU, and for how long.
 *
 *     spawn_device_memory PROGRAM [ARGUMENT...]
 *
 * Starts the program, waits until the driver lists it on a device, kills it and prints
 *
 *     memory_mb   what it had there
 *     dead_ms     from the kill to its end, as its parent is told
 *     gone_ms     from the kill until the driver neither lists it nor counts its memory as used
 *
 * The driver tells of no change, so it is asked again and again, each time after a millisecond.
 * Exit 1: it came on no device or did not leave it within 30 s, 4: there is no device. */
#include "base/sys/clock.h"
#include "base/sys/nvml.h"
#include "base/sys/process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

static const int64_t WAIT_NS = 30000000000;
/* The driver keeps some for itself after the first context. */
static const int64_t SLACK = 128 << 20;

struct seen {
    size_t device;
    bool listed;
    int64_t used, bytes;
};

static bool look(const struct nvml *n, size_t i, pid_t pid, struct seen *ret) {
    struct nvml_process list[NVML_PROCESSES_MAX];
    struct err err;
    size_t count = 0;
    struct seen s = {.device = i, .bytes = -1};
    if (nvml_memory_used(n, i, &s.used, &err) != 0 ||
        nvml_processes(n, i, list, &count, &err) != 0) {
        fprintf(stderr, "spawn_device_memory: %s\n", err.msg);
        return false;
    }
    for (size_t k = 0; k < count; k++)
        if (list[k].pid == pid) {
            s.listed = true;
            s.bytes = list[k].bytes;
        }
    *ret = s;
    return true;
}

static bool find(const struct nvml *n, pid_t pid, struct seen *ret) {
    for (size_t i = 0; i < nvml_count(n); i++)
        if (look(n, i, pid, ret) && ret->listed)
            return true;
    return false;
}

/* It has a context before it has its data. */
static bool wait_for_memory(const struct nvml *n, const struct process *p, struct seen *ret) {
    int64_t end = clock_monotonic_ns() + WAIT_NS;
    while (clock_monotonic_ns() < end) {
        struct pollfd ended = {.fd = p->pidfd, .events = POLLIN};
        if (poll(&ended, 1, 1) != 0)
            return false;
        if (find(n, p->pid, ret)) {
            poll(&ended, 1, 1000); /* so that it computes */
            return look(n, ret->device, p->pid, ret) && ret->listed;
        }
    }
    return false;
}

static int measure(const struct nvml *n, const struct process *p, int64_t before,
                   const struct seen *full) {
    struct seen now;
    int64_t begin = clock_monotonic_ns(), gone = 0;
    process_signal(p, SIGKILL);
    process_reap(p, WAIT_NS, NULL);
    int64_t dead = clock_monotonic_ns();
    while (!gone && clock_monotonic_ns() < begin + WAIT_NS) {
        if (look(n, full->device, p->pid, &now) && !now.listed && now.used <= before + SLACK)
            gone = clock_monotonic_ns();
        else
            poll(NULL, 0, 1);
    }
    int64_t bytes = full->bytes >= 0 ? full->bytes : full->used - before;
    printf("memory_mb %lld\ndead_ms %.1f\n", (long long)bytes >> 20, (double)(dead - begin) / 1e6);
    if (!gone)
        return 1;
    printf("gone_ms %.1f\n", (double)(gone - begin) / 1e6);
    return 0;
}

int main(int argc, char **argv) {
    struct process_spawn s = {.argv = (const char *const *)argv + 1, .death_signal = SIGKILL};
    struct err err;
    struct process p;
    struct seen full;
    int64_t before[NVML_DEVICES_MAX] = {0};
    struct nvml *n = nvml_open(&err);
    if (argc < 2 || !n || !nvml_count(n)) {
        fprintf(stderr, "spawn_device_memory: %s\n",
                n ? "no device, or no program given" : err.msg);
        return 4;
    }
    for (size_t i = 0; i < nvml_count(n); i++)
        nvml_memory_used(n, i, &before[i], NULL);
    int r = process_spawn(&s, &p, &err);
    if (r == 0 && wait_for_memory(n, &p, &full)) {
        r = measure(n, &p, before[full.device], &full);
    } else {
        fprintf(stderr, "spawn_device_memory: %s\n",
                r ? err.msg : "the program came on no device within 30 s");
        r = 1;
    }
    nvml_close(n);
    return r;
}
