#include "reports/batch/batch.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

const struct batch_report *const batch_reports[] = {
#define X(name) &batch_##name,
    BATCH_REPORTS(X)
#undef X
        NULL};

const struct batch_report *batch_report_find(const char *name) {
    for (size_t i = 0; batch_reports[i]; i++)
        if (str_eq(batch_reports[i]->name, name))
            return batch_reports[i];
    return NULL;
}

static bool are_alike(const struct judged *a, const struct judged *b) {
    return str_eq(a->name, b->name) && str_eq(a->file, b->file) && str_eq(a->sets, b->sets);
}

size_t batch_alike(const struct batch *b, size_t i, const struct judged **ret) {
    size_t n = 0;
    for (size_t k = 0; k < i; k++)
        if (are_alike(&b->v[k], &b->v[i]))
            return 0;
    for (size_t k = i; k < b->n; k++)
        if (are_alike(&b->v[k], &b->v[i]))
            ret[n++] = &b->v[k];
    return n;
}

void batch_each(const struct batch *b,
                void (*each)(void *arg, const struct judged *const *v, size_t n), void *arg) {
    const struct judged **alike = mem_array(const struct judged *, b->n + 1);
    for (size_t i = 0; i < b->n; i++) {
        size_t n = batch_alike(b, i, alike);
        if (n)
            each(arg, alike, n);
    }
    free(alike);
}
