/* What a job on GPUs needs. A host without one lacks nothing: it was not asked. */
#include "harness/doctor/host_question.h"

#include "base/sys/file.h"
#include "base/sys/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char NO_GPU[] = "no GPU here, and nothing here needs one";

static size_t count_devices(void) {
    struct nvml *n = nvml_open(NULL);
    size_t count = n ? nvml_count(n) : 0;
    nvml_close(n);
    return count;
}

static bool tell_devices(const struct nvml *n, struct question_result *r) {
    struct nvml_device d;
    struct err err;
    for (size_t i = 0; i < nvml_count(n); i++) {
        if (nvml_device(n, i, &d, &err) != 0)
            return question_lacks(
                r, "nvidia-smi -q; a device that is lost comes back with a restart", "%s", err.msg);
        if (!d.shareable)
            return question_lacks(r, "nvidia-smi -c DEFAULT, as root",
                                  "GPU %d (%.100s) lets one process in (compute mode)", d.index,
                                  d.name);
    }
    return question_works(r, "%zu: %.100s%s, driver %.40s", nvml_count(n), d.name,
                          nvml_count(n) > 1 ? " and more" : "", nvml_driver(n));
}

static bool look_gpu(struct question_result *r) {
    struct err err;
    struct nvml *n = nvml_open(&err);
    if (n && nvml_count(n))
        tell_devices(n, r);
    else if (n || err.code == -ENOENT)
        question_unasked(r, "%s", NO_GPU);
    else
        question_lacks(
            r,
            "nvidia-smi; where it fails as well the module is not loaded (modprobe nvidia) "
            "or of another version than the library (restart)",
            "%.200s", err.msg);
    nvml_close(n);
    return r->status == QUESTION_WORKS;
}

const struct host_question host_question_gpu = {
    .name = "gpu",
    .gives = "jobs on GPUs, several nodes on one; evidence about their memory and processes",
    .look = look_gpu,
};

/* ---- CUDA ---- */

static bool look_cuda(struct question_result *r) {
    int (*init)(unsigned), (*get_version)(int *), version = 0;
    if (!count_devices())
        return question_unasked(r, "%s", NO_GPU);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbols[] = {cuda ? dlsym(cuda, "cuInit") : NULL,
                       cuda ? dlsym(cuda, "cuDriverGetVersion") : NULL};
    if (!symbols[0] || !symbols[1])
        return question_lacks(r, "install the driver's CUDA library (Debian: libcuda1)",
                              "there are GPUs, but libcuda.so.1 cannot be loaded");
    memcpy(&init, &symbols[0], sizeof(init));
    memcpy(&get_version, &symbols[1], sizeof(get_version));
    int code = init(0);
    if (code == 0 && get_version(&version) == 0)
        return question_works(r, "the driver speaks CUDA %d.%d", version / 1000,
                              version % 1000 / 10);
    return question_lacks(r, "nvidia-smi; ci/gpu tells more", "the CUDA driver refuses: error %d",
                          code);
}

const struct host_question host_question_cuda = {
    .name = "cuda",
    .gives = "computing on the GPUs that are there",
    .look = look_cuda,
};

/* ---- ranktrain's library ---- */

static const char *library_path(char *buffer, size_t size) {
    const char *named = getenv("RANKTRAIN_CUDA");
    if (named && *named)
        return named;
    file_own_folder(buffer, size - 32);
    return strcat(buffer, "/ranktrain_cuda.so");
}

static bool look_ranktrain_cuda(struct question_result *r) {
    char buffer[4096];
    const char *path = library_path(buffer, sizeof(buffer));
    bool there = access(path, R_OK) == 0;
    if (there && dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return question_works(r, "%.200s loads", path);
    if (there)
        return question_lacks(r, "build it again here: make", "%.200s", dlerror());
    if (count_devices())
        return question_lacks(
            r, "install the CUDA toolkit (nvcc) and type make, or carry the file here",
            "ranktrain was built without CUDA: there is no %.150s", path);
    return question_unasked(r, "not built (no nvcc), and no GPU here needs it");
}

const struct host_question host_question_ranktrain_cuda = {
    .name = "ranktrain_cuda",
    .gives = "ranktrain --device cuda, the reference job on a GPU",
    .look = look_ranktrain_cuda,
};

/* ---- NCCL ---- */

/* Where the linker does not look: the toolkit, and the packages of Python. */
static void *load_elsewhere(void) {
    static const char *const patterns[] = {
        "/usr/local/cuda*/lib64/libnccl.so.2",
        "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/opt/*/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
    };
    void *handle = NULL;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns) && !handle; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) == 0)
            handle = dlopen(found.gl_pathv[0], RTLD_LAZY | RTLD_LOCAL);
        globfree(&found);
    }
    return handle;
}

static void *load_nccl(void) {
    const char *named = getenv("NCCL_LIB");
    if (named && *named)
        return dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    void *handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    return handle ? handle : load_elsewhere();
}

/* 2.28.9 is 22809; before 2.9 it was 2809. */
static bool judge_version(int v, struct question_result *r) {
    int major = v < 10000 ? v / 1000 : v / 10000, minor = v < 10000 ? v / 100 % 10 : v / 100 % 100;
    if (major == 2 && minor >= 14)
        return question_works(r, "NCCL %d.%d.%d", major, minor, v % 100);
    return question_lacks(
        r, "install NCCL 2.14 or newer of major version 2, or name it in NCCL_LIB",
        "NCCL %d.%d: communicators that do not block came with 2.14", major, minor);
}

static bool look_nccl(struct question_result *r) {
    int (*get_version)(int *), version = 0;
    if (!count_devices() && !getenv("NCCL_LIB"))
        return question_unasked(r, "%s", NO_GPU);
    void *nccl = load_nccl(), *symbol = nccl ? dlsym(nccl, "ncclGetVersion") : NULL;
    if (!symbol)
        return question_lacks(
            r,
            "install it (Debian: libnccl2; Python: nvidia-nccl-cu12 or -cu13), or name it "
            "in NCCL_LIB",
            "libnccl.so.2 cannot be loaded");
    memcpy(&get_version, &symbol, sizeof(get_version));
    if (get_version(&version) == 0)
        return judge_version(version, r);
    return question_lacks(r, "install it anew", "NCCL does not tell its version");
}

const struct host_question host_question_nccl = {
    .name = "nccl",
    .gives = "ranktrain --dist-backend nccl, and most training on more than one GPU",
    .look = look_nccl,
};
