/* Changes one bit of a file that the job has written. */
#include "faults/disk/stored.h"

#include "faults/mechanism/file_damage.h"
#include "faults/mechanism/file_state.h"

static int check(const struct fault_args *a, struct err *err) {
    int64_t offset;
    int bit, r = stored_check(a, err);
    return r ? r : stored_offset(a, 0, &offset, &bit, err);
}

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    struct file_state was;
    int64_t offset;
    int bit;
    file_state_read(&s->in, s->path, 0, &was);
    int r = stored_offset(a, was.bytes, &offset, &bit, err);
    return r ? r : file_flip(&s->in, s->path, offset, bit, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_flip = {
    .name = "file-flip",
    .summary =
        "one bit of a file that the job has written changes, and the file says nothing of it",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params =
        (const struct fault_param[]){
            STORED_PARAMS,
            {"offset", "string", "drawn", "which byte of it, from 0; drawn: by the seed"},
            {"bit", "string", "drawn", "which bit of the byte, 0 to 7; drawn: by the seed"},
            {0}},
    .undo = "nothing to undo: the file stays as it is until the job writes it anew",
    .blast = "whoever reads it; its length and its times are what they were; it is felt when a "
             "worker is started while it lies so",
    .example = "{when: {step: 20}, fault: file-flip, with: {path: "
               "\"{shared}/ckpt/*/weights.f32\"}, on: n1}",
    .check = check,
    .inject = inject,
};
