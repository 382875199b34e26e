/* What points at the newest checkpoint points at another. */
#include "faults/disk/stored.h"

#include "base/str.h"
#include "faults/mechanism/file_damage.h"

#include <errno.h>
#include <string.h>

static int check(const struct fault_args *a, struct err *err) {
    const char *to = fault_arg(a, "to", "older");
    int r = stored_check(a, err);
    if (r == 0 && (!*to || strchr(to, '\n') || strlen(to) > 255))
        r = err_say(err, -EINVAL,
                    "to: \"%.40s\" is neither older nor missing, nor a text of one "
                    "line that a pointer could say",
                    to);
    return r;
}

static int point(const struct stored *s, const char *to, struct err *err) {
    char says[PATH_MAX], other[PATH_MAX];
    bool missing = str_eq(to, "missing");
    if (!missing && !str_eq(to, "older"))
        return file_pointer_write(&s->in, s->path, to, err);
    int r = file_pointer_read(&s->in, s->path, says, sizeof(says), err);
    r = r ? r : file_pointer_other(&s->in, s->path, says, missing, other, sizeof(other), err);
    return r ? r : file_pointer_write(&s->in, s->path, other, err);
}

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    return point(s, fault_arg(a, "to", "older"), err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_stale = {
    .name = "file-stale",
    .summary =
        "what names the newest checkpoint, a link or a file of one line, names an older one, "
        "or one that is not there",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params =
        (const struct fault_param[]){STORED_PARAMS,
                                     {"to", "text", "older",
                                      "older: the number in it becomes that of the next older "
                                      "one that lies there; missing: one of which nothing "
                                      "does; or a text that it says"},
                                     {0}},
    .undo = "nothing to undo: it stays so until the job writes it anew",
    .blast = "whoever follows it: the rest of the directory is as it was; it is felt when a worker "
             "is started while it says so",
    .example = "{when: {step: 20}, fault: file-stale, with: {path: \"{shared}/ckpt/latest\", to: "
               "older}, on: n1}",
    .check = check,
    .inject = inject,
};
