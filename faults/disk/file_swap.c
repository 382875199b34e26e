/* Two files of the job have exchanged their names. */
#include "faults/disk/stored.h"

#include "base/str.h"
#include "faults/mechanism/file_damage.h"
#include "faults/mechanism/file_pick.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char next[] = "next";

static int check(const struct fault_args *a, struct err *err) {
    const char *other = fault_arg(a, "other", next);
    int r = stored_check(a, err);
    if (r == 0 && (!*other || strchr(other, '/') || str_eq(other, ".") || str_eq(other, "..")))
        r = err_say(err, -EINVAL,
                    "other: \"%.200s\" is no name beside the file: write one without /", other);
    return r;
}

static int find_other(const struct stored *s, const char *name, char ret[PATH_MAX],
                      struct err *err) {
    if (str_eq(name, next))
        return file_pick_other(&s->in, s->pattern, s->path, ret, err);
    snprintf(ret, PATH_MAX, "%.*s%s", (int)(str_base(s->path) - s->path), s->path, name);
    return str_eq(ret, s->path) ? err_say(err, -EINVAL, "%s is the file itself", s->path) : 0;
}

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    char other[PATH_MAX];
    int r = find_other(s, fault_arg(a, "other", next), other, err);
    return r ? r : file_exchange(&s->in, s->path, other, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_swap = {
    .name = "file-swap",
    .summary = "two files, or directories, of the job have exchanged their names, as two ranks' "
               "shards or two steps",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params =
        (const struct fault_param[]){STORED_PARAMS,
                                     {"other", "text", "next",
                                      "the name, beside it, with which it is exchanged; next: "
                                      "the next beside it that matches"},
                                     {0}},
    .undo = "nothing to undo: both stay so until the job writes them anew",
    .blast =
        "whoever reads one of them: each is whole, and of another; it is felt when a worker is "
        "started while they lie so",
    .example = "{when: {step: 20}, fault: file-swap, with: {path: "
               "\"{shared}/ckpt/*/weights.f32\", other: velocity.f32}, on: n1}",
    .check = check,
    .inject = inject,
};
