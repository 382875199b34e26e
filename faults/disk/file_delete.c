/* Takes away a file, or a directory, that the job has written. */
#include "faults/disk/stored.h"

#include "faults/mechanism/file_damage.h"

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    return file_delete(&s->in, s->path, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_delete = {
    .name = "file-delete",
    .summary = "a file or a directory that the job has written is gone, as one shard of several",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params = (const struct fault_param[]){STORED_PARAMS, {0}},
    .undo = "nothing to undo: it stays away until the job writes it anew",
    .blast = "whoever looks for it; it is felt when a worker is started while it is gone",
    .example = "{when: {step: 20}, fault: file-delete, with: {path: "
               "\"{shared}/ckpt/*/velocity.f32\"}, on: n1}",
    .check = stored_check,
    .inject = inject,
};
