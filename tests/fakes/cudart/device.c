/* Devices, versions, errors, and the plan of what goes wrong. */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES_MAX = 16, RUNTIME = 13000 };

static struct fake_plan plan;
static pthread_once_t planned = PTHREAD_ONCE_INIT;
static _Atomic int spoilt, context_made, last_set;
static __thread int device, last_error;

static bool number(const char *word, const char *key, long *ret) {
    size_t n = strlen(key);
    return strncmp(word, key, n) == 0 && sscanf(word + n, "%ld", ret) == 1;
}

static void take_word(const char *word, long *rank) {
    long v;
    if (number(word, "devices=", &v))
        plan.devices = (int)v;
    else if (number(word, "driver=", &v))
        plan.driver = (int)v;
    else if (number(word, "memory=", &v))
        plan.memory = (size_t)v;
    else if (number(word, "oom-at=", &v))
        plan.oom_at = (int)v;
    else if (number(word, "hang@launch:", &v))
        plan.hang_at = (int)v;
    else if (number(word, "wait@launch:", &v))
        plan.wait_at = (int)v;
    else if (sscanf(word, "sticky=%d@launch:%d", &plan.sticky_code, &plan.sticky_at) == 2)
        ;
    else if (number(word, "rank=", &v))
        *rank = v;
    else if (strcmp(word, "busy") == 0)
        plan.busy = true;
    else if (strcmp(word, "full") == 0)
        plan.full = true;
    else if (strcmp(word, "hang@init") == 0)
        plan.hang_at_init = true;
    else if (strcmp(word, "mode=exclusive") == 0)
        plan.mode = cudaComputeModeExclusiveProcess;
    else if (strcmp(word, "mode=prohibited") == 0)
        plan.mode = cudaComputeModeProhibited;
    else if (strncmp(word, "report=", 7) == 0)
        snprintf(plan.report, sizeof(plan.report), "%s", word + 7);
    else {
        fprintf(stderr, "RANKTRAIN_FAKE_CUDA: unknown word '%s'\n", word);
        abort();
    }
}

static void report(void) {
    struct fake_left left = {0};
    const char *rank = getenv("RANK");
    FILE *f = fopen(plan.report, "ae");
    if (!f)
        return;
    fake_memory_left(&left);
    fake_stream_left(&left);
    fprintf(f,
            "rank %s device %d bytes %zu pinned %zu streams %d events %d launches %d "
            "peak %zu\n",
            rank ? rank : "0", last_set, left.bytes, left.pinned, left.streams, left.events,
            left.launches, left.peak);
    fclose(f);
}

/* What goes wrong is another process's concern. */
static void go_well(void) {
    plan.busy = plan.full = plan.hang_at_init = false;
    plan.oom_at = plan.sticky_at = plan.hang_at = plan.wait_at = 0;
}

static void read_plan(void) {
    const char *text = getenv("RANKTRAIN_FAKE_CUDA"), *own = getenv("RANK");
    long rank = -1;
    char *copy = strdup(text ? text : ""), *save = NULL;
    plan = (struct fake_plan){.devices = 1, .driver = RUNTIME, .memory = (size_t)1 << 30};
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save))
        take_word(w, &rank);
    free(copy);
    if (rank >= 0 && rank != atol(own ? own : "0"))
        go_well();
    if (*plan.report)
        atexit(report);
}

const struct fake_plan *fake_plan(void) {
    pthread_once(&planned, read_plan);
    return &plan;
}

void fake_spoil(cudaError_t e) {
    spoilt = (int)e;
}

cudaError_t fake_spoilt(void) {
    return (cudaError_t)spoilt;
}

cudaError_t fake_answer(cudaError_t e) {
    int code = spoilt ? spoilt : (int)e;
    if (code)
        last_error = code;
    return (cudaError_t)code;
}

void fake_hang(void) {
    for (;;)
        pause();
}

/* As far as CUDA_VISIBLE_DEVICES goes: up to the first word that names none. */
static int visible(int ret[DEVICES_MAX]) {
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    char *copy, *save = NULL, *end;
    int n = 0;
    if (!text) {
        while (n < fake_plan()->devices && n < DEVICES_MAX) {
            ret[n] = n;
            n++;
        }
        return n;
    }
    copy = strdup(text);
    for (char *w = strtok_r(copy, ",", &save); w && n < DEVICES_MAX;
         w = strtok_r(NULL, ",", &save)) {
        const char *uuid = "GPU-fa4e0000-0000-0000-0000-";
        bool named = strncmp(w, uuid, strlen(uuid)) == 0;
        long v = named ? strtol(w + strlen(uuid), &end, 16) : strtol(w, &end, 10);
        if (end == w || *end || v < 0 || v >= fake_plan()->devices)
            break;
        ret[n++] = (int)v;
    }
    free(copy);
    return n;
}

static cudaError_t count_devices(int *ret) {
    int unused[DEVICES_MAX];
    if (fake_plan()->driver / 1000 < RUNTIME / 1000)
        return cudaErrorInsufficientDriver;
    int n = visible(unused);
    if (n == 0)
        return cudaErrorNoDevice;
    *ret = n; /* untouched on failure, as the real one */
    return cudaSuccess;
}

/* The number among all, of one of the visible ones; -1: there is none. */
static int physical(int index) {
    int all[DEVICES_MAX];
    int n = visible(all);
    return index >= 0 && index < n ? all[index] : -1;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = fake_plan()->driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = RUNTIME;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    return fake_answer(count_devices(count));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int index) {
    int p = physical(index);
    if (p < 0)
        return fake_answer(cudaErrorInvalidDevice);
    *prop = (struct cudaDeviceProp){.name = "Fake GPU", .totalGlobalMem = fake_plan()->memory};
    memcpy(prop->uuid.bytes, "\xfa\x4e", 2);
    prop->uuid.bytes[15] = (char)p;
    return fake_answer(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index) {
    if (physical(index) < 0 || attribute != cudaDevAttrComputeMode)
        return fake_answer(cudaErrorInvalidValue);
    *value = fake_plan()->mode;
    return fake_answer(cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int index) {
    int p = physical(index);
    if (p < 0)
        return fake_answer(cudaErrorInvalidDevice);
    snprintf(id, (size_t)length, "0000:%02X:00.0", 0x10 + p);
    return fake_answer(cudaSuccess);
}

cudaError_t fake_context(void) {
    int count;
    cudaError_t e = count_devices(&count);
    if (e != cudaSuccess)
        return e;
    if (spoilt || context_made)
        return (cudaError_t)spoilt;
    if (fake_plan()->hang_at_init)
        fake_hang();
    if (fake_plan()->busy)
        return cudaErrorDevicesUnavailable;
    if (fake_plan()->full)
        return cudaErrorMemoryAllocation;
    context_made = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    (void)flags;
    return fake_answer(fake_context());
}

cudaError_t cudaSetDevice(int index) {
    if (physical(index) < 0)
        return fake_answer(cudaErrorInvalidDevice);
    device = last_set = index;
    return fake_answer(fake_context());
}

cudaError_t cudaGetDevice(int *ret) {
    *ret = device;
    return fake_answer(cudaSuccess);
}

cudaError_t cudaGetLastError(void) {
    int e = spoilt ? spoilt : last_error;
    last_error = 0;
    return (cudaError_t)e;
}

cudaError_t cudaPeekAtLastError(void) {
    return (cudaError_t)(spoilt ? spoilt : last_error);
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "the driver is too old"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "devices are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error"},
    {cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable", "uncorrectable NVLink error"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "illegal memory access"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out"},
    {cudaErrorAssert, "cudaErrorAssert", "an assertion failed on the device"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorMpsClientTerminated, "cudaErrorMpsClientTerminated", "MPS client terminated"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == error)
            return errors[i].text;
    return "unrecognized error code";
}
