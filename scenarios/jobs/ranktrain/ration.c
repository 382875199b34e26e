#include "scenarios/jobs/ranktrain/ration.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define RATION_NAME(name, text) text,
static const char *const names[] = {RATION_KINDS(RATION_NAME)};
#undef RATION_NAME

static size_t total(const struct ration *r) {
    size_t sum = 0;
    for (int i = 0; i < RATION_COUNT; i++)
        sum += r->held[i];
    return sum;
}

int ration_take(struct ration *r, enum ration_kind kind, size_t bytes, struct err *err) {
    size_t held = total(r);
    if (r->limit && held + bytes > r->limit)
        return err_say(err, -ENOMEM,
                       "the device's memory is full: %zu bytes for %s do not fit beside the %zu "
                       "that it holds of --device-memory=%zu; --mode=fsdp holds less",
                       bytes, names[kind], held, r->limit);
    r->held[kind] += bytes;
    return 0;
}

void *ration_alloc(struct ration *r, enum ration_kind kind, size_t n, size_t size,
                   struct err *err) {
    n = n ? n : 1;
    return ration_take(r, kind, n * size, err) < 0 ? NULL : mem_alloc(n, size);
}

void ration_print(const struct ration *r, char ret[RATION_TEXT]) {
    size_t n = 0;
    for (int i = 0; i < RATION_COUNT && n < RATION_TEXT; i++)
        n += (size_t)snprintf(ret + n, RATION_TEXT - n, "%s%s %zu", i ? ", " : "", names[i],
                              r->held[i]);
    if (n < RATION_TEXT)
        snprintf(ret + n, RATION_TEXT - n, " bytes");
}
