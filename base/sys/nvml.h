/* nvml: what NVIDIA's driver says of the devices of this host, and of who uses them.
 *
 * The library (libnvidia-ml.so.1) comes with the driver and is loaded when it is first asked for;
 * without it there are simply no devices. Only what is needed is declared here, after NVIDIA's
 * "NVML API Reference Guide". It is only read: no setting of a device is ever changed.
 *
 * RANKQUAKE_NVML names another file to load, RANKQUAKE_DEV another directory than /dev for the
 * files of the devices; both are for tests. One thread at a time. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NVML_DEVICES_MAX = 64, NVML_PROCESSES_MAX = 256 };

struct nvml_device {
    int index;     /* as nvidia-smi counts them */
    char uuid[96]; /* "GPU-..." */
    char name[96];
    int64_t memory; /* bytes, in all; -1: not told */
    bool shareable; /* compute mode Default: several processes at once */
};

struct nvml_process {
    pid_t pid;     /* in the eyes of the driver: as a rule of the first pid namespace */
    int64_t bytes; /* -1: not told */
};

struct nvml;

/* Loads the library and asks the driver. NULL with err: -ENOENT (no library: there is no such
 * driver here), -ENOSYS (the library lacks a function), -ENODEV (the driver does not answer). */
struct nvml *nvml_open(struct err *err);
struct nvml *nvml_close(struct nvml *n); /* NULL is allowed; returns NULL */

size_t nvml_count(const struct nvml *n);
const char *nvml_driver(const struct nvml *n); /* "570.86.15", "" when it is not told */
/* i counts from 0. A device that is lost answers -ENODEV. */
int nvml_device(const struct nvml *n, size_t i, struct nvml_device *ret, struct err *err);
/* Bytes in use on it, by whomever. */
int nvml_memory_used(const struct nvml *n, size_t i, int64_t *ret, struct err *err);
/* The processes with a compute context on it, NVML_PROCESSES_MAX at most. In a container the driver
 * may leave them out, or number them as the host does; -ENOTSUP: it tells nobody. */
int nvml_processes(const struct nvml *n, size_t i, struct nvml_process *ret, size_t *ret_n,
                   struct err *err);

/* How it fares; -1: the device or the driver does not tell. */
struct nvml_health {
    int64_t ecc_uncorrected;      /* memory errors since the driver was loaded */
    int64_t slowed_by;            /* nvmlClocksThrottleReasons: bits; 0: by nothing */
    int64_t links_up, links_down; /* NVLinks */
    /* Rows of memory that were given up: a reset is needed to replace them (1), or they cannot be (1). */
    int64_t remap_pending, remap_failed;
    int64_t lanes, lanes_max; /* PCIe lanes in use, and what device and slot have */
};
void nvml_health(const struct nvml *n, size_t i, struct nvml_health *ret);

/* Whether the process has a file of the driver open ("/dev/nvidia0", "/dev/nvidiactl"), which is
 * what keeps its memory on a device: 1 or 0; -errno when nobody may look (-EACCES) or it has gone
 * (-ENOENT). It does not tell which device it computes on: CUDA opens them all. */
int nvml_holds_driver(pid_t pid);
