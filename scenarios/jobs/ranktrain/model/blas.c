#include "scenarios/jobs/ranktrain/model/blas.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* Before its first product it maps a buffer of so many bytes, and where that is refused it tries
 * for ever. */
static const size_t BUFFER_BYTES = (size_t)160 << 20;

static int check_room(struct err *err) {
    void *p = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return err_set(err, -errno,
                       "OpenBLAS needs %zu MB of address space, let it have them (ulimit -v)",
                       BUFFER_BYTES >> 20);
    munmap(p, BUFFER_BYTES);
    return 0;
}

static void *symbol(void *library, const char *name) {
    return dlsym(library, name);
}

/* The library maps its buffers at the first product, and waits for ever where there is no room for
 * them: so that is now, before others take it. */
static void warm_up(const struct blas *b) {
    enum { SIDE = 64 };
    float *m = mem_array(float, 3 * SIDE * SIDE);
    blas_product(b, false, SIDE, SIDE, SIDE, false, m, SIDE, false, m + SIDE * SIDE, SIDE,
                 m + 2 * SIDE * SIDE);
    free(m);
}

int blas_open(struct blas *ret, struct err *err) {
    struct blas b = {0};
    int room = check_room(err);
    if (room < 0)
        return room;
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
    warm_up(&b);
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
