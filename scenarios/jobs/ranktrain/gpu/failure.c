#include "scenarios/jobs/ranktrain/gpu/failure.h"

#include <errno.h>
#include <string.h>

bool failure_is_final(cudaError_t e) {
    int code = (int)e;
    return code == cudaErrorECCUncorrectable || code == cudaErrorNvlinkUncorrectable ||
           code == 226 /* contained memory error; not in older headers */ ||
           (code >= cudaErrorIllegalAddress && code <= cudaErrorLaunchFailure) ||
           code == cudaErrorMpsClientTerminated || code == cudaErrorUnknown;
}

static int say(struct err *err, int code, cudaError_t e, const char *what, const char *fix) {
    return err_say(err, code, "%s: %s (%d): %s%s%s", what, cudaGetErrorName(e), (int)e,
                   cudaGetErrorString(e), *fix ? "; " : "", fix);
}

static int say_too_old(int driver, int runtime, struct err *err) {
    return err_say(
        err, -ENODEV,
        "the NVIDIA driver is too old: it can do CUDA %d.%d and this ranktrain was built "
        "with CUDA %d.%d; update the driver or build with an older toolkit",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* Set to something that was meant to name a device. Empty and -1 are how people say "none". */
static bool names_something(const char *visible) {
    return visible && *visible && strcmp(visible, "-1") != 0 && strcmp(visible, "NoDevFiles") != 0;
}

int failure_to_find(cudaError_t e, int driver, int runtime, const char *visible, struct err *err) {
    if (e == cudaErrorInsufficientDriver && driver > 0)
        return say_too_old(driver, runtime, err);
    if (e == cudaErrorInsufficientDriver || e == cudaErrorStubLibrary)
        return err_say(err, -ENODEV,
                       "there is no NVIDIA driver here (libcuda.so.1): install one, or start the "
                       "container with its GPUs");
    if (e == cudaErrorNoDevice && names_something(visible))
        return err_say(err, -EINVAL,
                       "CUDA_VISIBLE_DEVICES=%s names no GPU of this machine: nvidia-smi -L lists "
                       "those that there are",
                       visible);
    if (e == cudaErrorNoDevice && visible)
        return err_say(err, -ENODEV, "CUDA_VISIBLE_DEVICES=%s hides every GPU: unset it", visible);
    if (e == cudaErrorNoDevice)
        return err_say(err, -ENODEV,
                       "the NVIDIA driver finds no GPU on this machine: nvidia-smi -L should list "
                       "one");
    return say(err, -EIO, e, "looking for GPUs", "nvidia-smi may tell more");
}

int failure_to_take(cudaError_t e, const char *who, int mode, struct err *err) {
    if (e == cudaErrorDevicesUnavailable && mode == cudaComputeModeProhibited)
        return err_say(err, -EBUSY,
                       "%s may not compute: its compute mode is Prohibited; choose another one, or "
                       "ask for mode Default (nvidia-smi -c 0)",
                       who);
    if (e == cudaErrorDevicesUnavailable && mode == cudaComputeModeExclusiveProcess)
        return err_say(err, -EBUSY,
                       "%s is busy: another process has it and its compute mode is "
                       "Exclusive_Process; wait, choose another one, or ask for mode Default "
                       "(nvidia-smi -c 0)",
                       who);
    if (e == cudaErrorDevicesUnavailable)
        return err_say(err, -EBUSY, "%s is busy or not available: nvidia-smi shows who has it",
                       who);
    if (e == cudaErrorMemoryAllocation)
        return err_say(err, -ENOMEM,
                       "%s is full: there is no memory left even to begin; nvidia-smi shows who "
                       "has it",
                       who);
    return say(err, -EIO, e, who, "nvidia-smi may tell more");
}
