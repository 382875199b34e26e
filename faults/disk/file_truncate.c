/* Cuts off the end of a file that the job has written. */
#include "faults/arguments.h"
#include "faults/disk/stored.h"

#include "base/str.h"
#include "faults/mechanism/file_damage.h"
#include "faults/mechanism/file_state.h"

/* -1: half of it. */
static int read_bytes(const struct fault_args *a, int64_t *ret, struct err *err) {
    *ret = -1;
    if (str_eq(fault_arg(a, "bytes", "half"), "half"))
        return 0;
    return fault_count(a, "bytes", "half", 0, INT64_C(1) << 50, ret, err);
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t bytes;
    int r = stored_check(a, err);
    return r ? r : read_bytes(a, &bytes, err);
}

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    struct file_state was;
    int64_t bytes;
    int r = read_bytes(a, &bytes, err);
    if (r)
        return r;
    file_state_read(&s->in, s->path, 0, &was);
    return file_truncate(&s->in, s->path, bytes < 0 ? was.bytes / 2 : bytes, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_truncate = {
    .name = "file-truncate",
    .summary = "a file that the job has written ends too early, as after a crash or a full disk",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params = (const struct fault_param[]){STORED_PARAMS,
                                           {"bytes", "string", "half",
                                            "how many bytes are left of it; half: of what it has"},
                                           {0}},
    .undo = "nothing to undo: the file stays as it is until the job writes it anew",
    .blast = "whoever reads it; it is felt when a worker is started while it lies so",
    .example = "{when: {step: 20}, fault: file-truncate, with: {path: "
               "\"{shared}/ckpt/*/weights.f32\"}, on: n1}",
    .check = check,
    .inject = inject,
};
