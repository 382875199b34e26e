/* What the job has written is replaced by a copy of something else. */
#include "faults/disk/stored.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "faults/mechanism/file_damage.h"
#include "faults/mechanism/file_pick.h"

#include <errno.h>
#include <string.h>

static const char next[] = "next";

/* Of a file of this host; NULL: it takes none. */
static const char *reads(const struct fault_args *a) {
    const char *from = fault_arg(a, "from", next);
    return *from == '/' ? from : NULL;
}

static int check(const struct fault_args *a, struct err *err) {
    const char *from = fault_arg(a, "from", next), *pattern;
    enum node_place place;
    int r = stored_check(a, err);
    if (r || str_eq(from, next))
        return r;
    if (*from != '/')
        return stored_read("from", from, &place, &pattern, err);
    if (file_pattern_check(from + 1, err) != 0)
        return err_say(err, -EINVAL, "from: %.200s is no path without empty parts, . and ..", from);
    return file_exists(from) ? 0 : err_say(err, -EINVAL, "from: there is no %.200s here", from);
}

static int replace_by_host(const struct stored *s, const char *from, struct err *err) {
    struct folder root;
    int r = folder_open(&root, "/", err);
    if (r)
        return r;
    r = file_replace(&s->in, s->path, &root, from + 1, err);
    folder_close(&root);
    return r;
}

static int replace_by_stored(const struct target *t, const struct stored *s, const char *from,
                             struct err *err) {
    enum node_place place;
    const char *pattern;
    char source[PATH_MAX];
    struct folder in = FOLDER_NONE;
    int r = stored_read("from", from, &place, &pattern, err);
    r = r ? r : t->ops->open_place(t->node, place, false, &in, err);
    r = r ? r : file_pick(&in, pattern, FILE_NEWEST, 0, source, err);
    r = r ? r : file_replace(&s->in, s->path, &in, source, err);
    folder_close(&in);
    return r;
}

static int replace(const struct target *t, const struct stored *s, const char *from,
                   struct err *err) {
    char other[PATH_MAX];
    if (*from == '/')
        return replace_by_host(s, from, err);
    if (!str_eq(from, next))
        return replace_by_stored(t, s, from, err);
    int r = file_pick_other(&s->in, s->pattern, s->path, other, err);
    return r ? r : file_replace(&s->in, s->path, &s->in, other, err);
}

static int damage(const struct target *t, const struct fault_args *a, const struct stored *s,
                  struct err *err) {
    return replace(t, s, fault_arg(a, "from", next), err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return stored_damage(t, a, damage, err);
}

const struct fault fault_file_foreign = {
    .name = "file-foreign",
    .summary = "in the place of a file or a directory of the job lies another: of another job, of "
               "another version, of another step",
    .effects = EFFECT_DAMAGES_DISK | EFFECT_SILENT,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(file_changed),
    .params =
        (const struct fault_param[]){STORED_PARAMS,
                                     {"from", "text", "next",
                                      "what a copy is taken of: an absolute path of this host, "
                                      "a pattern behind {shared}/ or {disk}/, or next: the next "
                                      "beside it that matches"},
                                     {0}},
    .undo = "nothing to undo: it stays so until the job writes it anew",
    .blast =
        "whoever reads it: it is whole, and not what its name says; it is felt when a worker is "
        "started while it lies so",
    .example = "{when: {step: 20}, fault: file-foreign, with: {path: \"{shared}/ckpt/step-*\"}, "
               "on: n1}",
    .check = check,
    .reads = reads,
    .inject = inject,
};
