/* The CUDA runtime as far as ranktrain uses it, for tests without a GPU. Names and numbers are
 * those of NVIDIA's header of that name (CUDA 13), for which this one stands in.
 *
 * Behind it is a library that really does what it is asked, on the CPU: memory is allocated and
 * counted, streams are threads that work off what is enqueued in order, kernels are run one thread
 * after another. Errors come as the real ones do: at a later call, and those that spoil the context
 * are answered to every call after that.
 *
 * The environment says what is there and what goes wrong, RANKTRAIN_FAKE_CUDA, words with commas:
 *
 *     devices=N          GPUs of the machine (1); CUDA_VISIBLE_DEVICES chooses as with real ones
 *     driver=VERSION     of the driver (13000); 0: there is none
 *     memory=BYTES       of each GPU (1 GiB)
 *     mode=MODE          compute mode: default, exclusive or prohibited
 *     busy               the GPU cannot be taken (46)
 *     full               nor is there memory for a context (2)
 *     oom-at=N           the N-th allocation on the device fails (2)
 *     sticky=CODE@launch:N   the N-th launch is accepted and spoils the context
 *     hang@launch:N      the N-th kernel never ends
 *     wait@launch:N      the N-th kernel goes on when a function has been put into another stream,
 *                        as NCCL's kernels are
 *     hang@init          taking the device never ends
 *     rank=N             what goes wrong goes wrong in the process with RANK=N alone
 *     report=FILE        at its end the process appends a line to the file: "rank 0 device 0
 *                        bytes 0 pinned 0 streams 0 events 0 launches 12 peak 4096": what it has
 *                        not given back, and the most bytes that it had on its devices */
#pragma once

#include <stddef.h>

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorNvlinkUncorrectable = 220,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchTimeout = 702,
    cudaErrorAssert = 710,
    cudaErrorLaunchFailure = 719,
    cudaErrorMpsClientTerminated = 810,
    cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaDeviceAttr { cudaDevAttrComputeMode = 20 };
enum cudaComputeMode {
    cudaComputeModeDefault = 0,
    cudaComputeModeProhibited = 2,
    cudaComputeModeExclusiveProcess = 3
};

#define cudaDeviceScheduleBlockingSync 0x04
#define cudaStreamNonBlocking          0x01
#define cudaEventBlockingSync          0x01
#define cudaEventDisableTiming         0x02

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *);

struct dim3 {
    unsigned x, y, z;
};
typedef struct dim3 dim3;

typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **ptr, size_t size);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMallocHost(void **ptr, size_t size);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t n, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg);
/* func is a kernel that takes one pointer. */
cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
