/* A driver that has a version and no device, for the library that nvcc built: its own CUDA runtime
 * loads libcuda.so.1 and asks it for everything by name.
 *
 *     RANKTRAIN_FAKE_DRIVER=VERSION,INIT   what cuDriverGetVersion says (12040) and cuInit answers
 *                                          (100: there is no device)
 *
 * Names and numbers are those of NVIDIA's cuda.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUDA_SUCCESS = 0, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_NOT_FOUND = 500 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *name, void **ret, int version, unsigned long long flags,
                        int *status);

static int plan(int which) {
    int values[2] = {13000, CUDA_ERROR_NO_DEVICE};
    const char *text = getenv("RANKTRAIN_FAKE_DRIVER");
    if (text)
        sscanf(text, "%d,%d", &values[0], &values[1]);
    return values[which];
}

int cuInit(unsigned flags) {
    (void)flags;
    return plan(1);
}

int cuDriverGetVersion(int *version) {
    *version = plan(0);
    return CUDA_SUCCESS;
}

static int export_table(const void **ret, const void *id) {
    (void)ret;
    (void)id;
    return CUDA_ERROR_NOT_FOUND;
}

/* All the rest is there and cannot be done without a device. */
static int no_device(void) {
    return CUDA_ERROR_NO_DEVICE;
}

int cuGetProcAddress_v2(const char *name, void **ret, int version, unsigned long long flags,
                        int *status) {
    (void)version;
    (void)flags;
    if (status)
        *status = 0;
    if (strcmp(name, "cuInit") == 0)
        *ret = (void *)cuInit;
    else if (strcmp(name, "cuDriverGetVersion") == 0)
        *ret = (void *)cuDriverGetVersion;
    else if (strcmp(name, "cuGetExportTable") == 0)
        *ret = (void *)export_table;
    else if (!*name || strcmp(name, "cuGetProcAddress") == 0)
        *ret = (void *)cuGetProcAddress_v2;
    else
        *ret = (void *)no_device;
    return CUDA_SUCCESS;
}
