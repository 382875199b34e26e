/* device: a GPU of this process, and the one thread that talks to it.
 *
 * Every call into CUDA may hang for ever: the driver waits for a device that has stopped. So all of
 * them are made by a thread of the device's own, and the caller waits for that thread with a
 * deadline and a descriptor that calls the wait off. A thread that does not come back is left
 * behind: the device is lost and nothing is asked of it again.
 *
 * An error that spoils the context (an illegal address, an ECC error ...) is answered to every
 * later call by CUDA itself until the process ends. The device is lost then, too. */
#pragma once

#include "base/err.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_NAME = 64 };

struct device {
    int index;           /* among the visible ones */
    cudaStream_t stream; /* of the kernels; of the primary context */
    char name[DEVICE_NAME];
    char uuid[48];       /* "GPU-...", as nvidia-smi and CUDA_VISIBLE_DEVICES name it */
    char pci[24];        /* "0000:17:00.0" */
    int driver, runtime; /* 13000: CUDA 13.0, what the driver can do and what we were built with */
    struct device_thread *t; /* device.c's own */
};

struct device_request {
    int local_rank;   /* the device is the local_rank-th visible one, round and round */
    int wake_fd;      /* readable: asked to end; -1: none */
    int64_t limit_ns; /* a call that takes longer has failed */
};

/* Chooses the device and makes its primary context. Returns 0; -ENODEV when there is no driver, one
 * older than this object's toolkit, or no device; -EINVAL when CUDA_VISIBLE_DEVICES names none;
 * -EBUSY, -ENOMEM, -ETIMEDOUT, -ECANCELED or -EIO with a sentence. A GPU may be opened several times,
 * each with a thread and a stream of its own. */
int device_open(const struct device_request *q, struct device **ret, struct err *err);

/* Runs call(d, arg) in the device's thread and returns what it returns, with its sentence.
 * -ETIMEDOUT after the request's limit, -ECANCELED when woken and a second later it is still not
 * back: the call then goes on using arg for ever, so that arg must never be freed. The same for
 * every call after that, and -EIO for every call after an error that spoilt the context. */
typedef int device_call(struct device *d, void *arg, struct err *err);
int device_do(struct device *d, device_call *call, void *arg, struct err *err);

/* The same with a limit of its own. */
int device_do_within(struct device *d, int64_t limit_ns, device_call *call, void *arg,
                     struct err *err);

/* Nothing may be asked of the device any more, not even to free memory. */
bool device_lost(const struct device *d);

/* The sentence of a CUDA error: "GPU 0 (NVIDIA H200): doing what: cudaErrorX (700): ...". Returns
 * -ENOMEM for memory, -EIO for everything else, and takes note of errors that spoil the context. In
 * the device's thread only. */
int device_fail(struct device *d, cudaError_t e, const char *doing, struct err *err);

/* The one that was opened first and is still open; NULL when none is. */
struct device *device_in_use(void);

/* Gives the stream back and ends the thread; memory must have been freed before. Returns 0, also
 * when the context is spoilt; -ETIMEDOUT when a call has not come back: the device's thread is left
 * behind, and the process must leave by _exit, for what a driver has registered to be done at exit
 * waits for the device too. NULL is allowed, and answers for a device that could not be opened. */
int device_close(struct device *d, struct err *err);
