/* ranktrain that measures, by malloc's own count, what it has allocated between the moment when its
 * arithmetic is at hand and the line that tells what it holds; behind that line it ends. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t before;

static size_t allocated(void) {
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

#define blas_open blas_open_rightly
#include "scenarios/jobs/ranktrain/model/blas.c"
#undef blas_open

int blas_open(struct blas *ret, struct err *err);

int blas_open(struct blas *ret, struct err *err) {
    int r = blas_open_rightly(ret, err);
    before = allocated();
    return r;
}

#define ration_print ration_print_rightly
#include "scenarios/jobs/ranktrain/ration.c"
#undef ration_print

void ration_print(const struct ration *r, char ret[RATION_TEXT]);

void ration_print(const struct ration *r, char ret[RATION_TEXT]) {
    size_t measured = allocated() - before;
    ration_print_rightly(r, ret);
    printf("holds %s\nmeasured %zu\n", ret, measured);
    exit(0);
}

#include "scenarios/jobs/ranktrain/main.c"
