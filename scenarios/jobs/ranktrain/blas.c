#include "scenarios/jobs/ranktrain/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

static const char *core_type(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : "Nehalem";
#elif defined(__aarch64__)
    return "ARMV8";
#else
    return "";
#endif
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "0.3.21" */
static void version_of(const char *config, char *ret, size_t size) {
    const char *p = config ? strchr(config, ' ') : NULL;
    size_t n = p ? strcspn(++p, " ") : 0;
    snprintf(ret, size, "%.*s", (int)n, p ? p : "");
}

static void *symbol(void *library, const char *name) {
    return dlsym(library, name);
}

int blas_open(struct blas *ret, struct err *err) {
    struct blas b = {0};
    setenv("OPENBLAS_CORETYPE", core_type(), 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    b.handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!b.handle)
        return err_say(err, -ENOENT, "OpenBLAS cannot be loaded (%s): install libopenblas0-pthread",
                       dlerror());
    void *sgemm = symbol(b.handle, "cblas_sgemm");
    void *core = symbol(b.handle, "openblas_get_corename");
    void *config = symbol(b.handle, "openblas_get_config");
    if (!sgemm || !core || !config) {
        dlclose(b.handle);
        return err_say(err, -ENOSYS,
                       "libopenblas.so.0 lacks cblas_sgemm or openblas_get_corename: "
                       "install libopenblas0-pthread");
    }
    char *(*get_core)(void), *(*get_config)(void), version[32];
    memcpy(&b.sgemm, &sgemm, sizeof(sgemm));
    memcpy(&get_core, &core, sizeof(core));
    memcpy(&get_config, &config, sizeof(config));
    version_of(get_config(), version, sizeof(version));
    snprintf(b.label, sizeof(b.label), "openblas %s %s", version, get_core());
    *ret = b;
    return 0;
}

void blas_close(struct blas *b) {
    if (b && b->handle)
        dlclose(b->handle);
    if (b)
        *b = (struct blas){0};
}

void blas_product(const struct blas *b, bool add, int m, int n, int k, bool transpose_a,
                  const float *a, int lda, bool transpose_b, const float *bb, int ldb, float *c) {
    b->sgemm(ROW_MAJOR, transpose_a ? TRANSPOSED : AS_IT_IS, transpose_b ? TRANSPOSED : AS_IT_IS, m,
             n, k, 1.0f, a, lda, bb, ldb, add ? 1.0f : 0.0f, c, n);
}
