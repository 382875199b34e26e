/* OpenBLAS as a library that is played: what it is told before it is loaded, what is asked of it, how it is named, and
 * what comes of each thing that is missing. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/model/blas.h"

#include <dlfcn.h>
#include <sys/mman.h>

static struct {
    int library; /* its address is the handle */
    const float *first;
} host;

static void *played_map(void *at, size_t n, int may, int flags, int fd, off_t offset) {
    assert_true(!at && offset == 0);
    return fails("map %zu, %d, %d, %d", n, may, flags, fd) ? MAP_FAILED : &host;
}

static int played_unmap(void *at, size_t n) {
    assert_ptr_equal(at, &host);
    note("unmap %zu", n);
    return 0;
}

static int played_setenv(const char *name, const char *value, int over) {
    bool is_core = strcmp(name, "OPENBLAS_CORETYPE") == 0; /* this host's */
    note("%s is %s, %d", name, is_core ? (*value ? "some" : "none") : value, over);
    return 0;
}

static void *played_library(const char *name, int flags) {
    return fails("library %s, %d", name, flags) ? NULL : &host.library;
}

static char *played_why(void) {
    static char why[] = "it is not there";
    return why;
}

/* Where matrices lie is told from the first on. */
static void played_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc) {
    host.first = host.first ? host.first : a;
    note("%d: %d %d, %d %d %d, %g, %td by %d, %td by %d, %g, %td by %d", order, trans_a, trans_b, m,
         n, k, (double)alpha, a - host.first, lda, b - host.first, ldb, (double)beta,
         c - host.first, ldc);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            c[i * ldc + j] = a[i * lda] + b[j];
}

static char *played_core(void) {
    static char core[] = "Core";
    return core;
}

static char *played_config(void) {
    static char configs[][120] = {
        "OpenBLAS 0.3.21 NO_LAPACKE",
        "OpenBLAS 0.3.21",
        "OpenBLAS",
        "OpenBLAS  two",
        "",
        "OpenBLAS a-version-that-is-longer-than-there-is-room-for-in-what-it-is-called x"};
    int which = draw(7);
    return which < 6 ? configs[which] : NULL;
}

static void *played_symbol(void *library, const char *name) {
    assert_ptr_equal(library, &host.library);
    if (fails("symbol %s", name))
        return NULL;
    return strcmp(name, "cblas_sgemm") == 0             ? (void *)(uintptr_t)played_sgemm
           : strcmp(name, "openblas_get_corename") == 0 ? (void *)(uintptr_t)played_core
           : strcmp(name, "openblas_get_config") == 0   ? (void *)(uintptr_t)played_config
                                                        : NULL;
}

static int played_no_library(void *library) {
    assert_ptr_equal(library, &host.library);
    note("library no more");
    return 0;
}

#define mmap    played_map
#define munmap  played_unmap
#define setenv  played_setenv
#define dlopen  played_library
#define dlerror played_why
#define dlsym   played_symbol
#define dlclose played_no_library
#include "scenarios/jobs/ranktrain/model/blas.c"

static void open_and_multiply(uint64_t seed) {
    struct blas b = {.label = "untouched"};
    struct err err = {0};
    float m[64] = {1, 2, 3};
    memset(&host, 0, sizeof(host));
    int r = blas_open(&b, &err);
    note("> %d, %d %s: %s, %d", r, err.code, err.msg, b.label, b.handle != NULL);
    if (r < 0)
        return;
    host.first = m;
    blas_product(&b, draw(2), 2, 3, 4, draw(2), m + 1, 5, draw(2), m + 20, 6, m + 40);
    blas_close(&b);
    note("> %s, %d", b.label, b.handle != NULL);
    blas_close(&b);
    blas_close(NULL);
}

static const struct play plays[] = {{"tests/scenarios/jobs/ranktrain/model/record/blas.txt",
                                     open_and_multiply,
                                     40,
                                     true,
                                     {ENOMEM, EACCES}}};

static void test_what_openblas_is_asked_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_openblas_is_asked_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
