#include "faults/process/memory_flip.h"

#include "base/str.h"
#include "faults/arguments.h"

#include <errno.h>

/* "drawn", or a number; -1: drawn. */
static int read_number(const struct fault_args *a, const char *key, int64_t max, int64_t *ret,
                       struct err *err) {
    *ret = -1;
    if (str_eq(fault_arg(a, key, "drawn"), "drawn"))
        return 0;
    return fault_count(a, key, "drawn", 0, max, ret, err);
}

static int read_args(const struct fault_args *a, int64_t *ret_offset, int64_t *ret_bit,
                     struct err *err) {
    int r = read_number(a, "offset", INT64_MAX, ret_offset, err);
    return r ? r : read_number(a, "bit", 7, ret_bit, err);
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t offset, bit;
    return read_args(a, &offset, &bit, err);
}

static const char *region(const struct fault_args *a) {
    return fault_arg(a, "region", NULL);
}

int memory_flip_bit(const struct target *t, const struct fault_args *a, struct bit *ret,
                    struct err *err) {
    const struct bit_range in = {t->region.bytes ? t->region.pid : t->pid, t->region.address,
                                 t->region.bytes};
    int64_t offset, number;
    int r = read_args(a, &offset, &number, err);
    if (r)
        return r;
    if (region(a) && !in.bytes)
        return err_say(err, -ESRCH,
                       "%s has announced no region \"%s\" (rankquake_region of rankquake.h)",
                       t->name, region(a));
    return bit_choose(&in, offset, number, a ? a->seed : 0, ret, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct bit bit;
    int r = memory_flip_bit(t, a, &bit, err);
    return r ? r : bit_flip(&bit, err);
}

const struct fault fault_memory_flip = {
    .name = "memory-flip",
    .summary = "one bit of a worker's memory changes, and nobody is told",
    .effects = EFFECT_DAMAGES_MEMORY | EFFECT_SILENT,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(memory_changed),
    .params =
        (const struct fault_param[]){
            {"region", "text", "(its longest mapping)",
             "the name of a region that the worker has announced, as ranktrain's weights, "
             "velocity"},
            {"offset", "string", "drawn", "which byte of it, from 0; drawn: by the seed"},
            {"bit", "string", "drawn", "which bit of the byte, 0 to 7; drawn: by the seed"},
            {0}},
    .undo = "nothing to undo: it stays until the worker writes there",
    .blast = "this worker's numbers, and those of all others by the next collective",
    .example = "{when: {step: 20}, fault: memory-flip, with: {region: weights}, on: rank 1}",
    .check = check,
    .region = region,
    .inject = inject,
};
