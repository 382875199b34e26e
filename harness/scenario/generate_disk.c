/* Faults on disks as disasters of `rankquake try`: of what this job keeps, when it is kept or read. */
#include "harness/scenario/generate.h"

#include "base/str.h"
#include "harness/scenario/yaml.h"

#include <inttypes.h>
#include <string.h>

/* A save that has begun meets it, and the next one does not any more. */
#define DISK_FAILS_FOR "500ms"
static const int64_t fails_for_ns = INT64_C(500000000);

static const char *const disks[] = {"{shared}", "{disk}"};

/* The directory that a word of its command names; of what looks like a file the one it lies in. */
static const char *directory_in(struct arena *a, const char *word) {
    size_t n = strcspn(word, " '\"*?[,;:|&<>");
    while (n > 0 && word[n - 1] == '/')
        n--;
    const char *dir = arena_strndup(a, word, n), *name = str_base(dir);
    return strchr(name, '.') && name > dir ? arena_strndup(a, dir, (size_t)(name - dir) - 1) : dir;
}

/* Where its checkpoints lie on a disk of the cluster: as it is said, else by its command. NULL: not
 * there. */
static const char *find_kept(struct arena *a, const struct scenario *base) {
    const char *dir = base->job.checkpoint_dir, *found = NULL;
    for (size_t d = 0; d < sizeof(disks) / sizeof(*disks) && !found; d++) {
        found = dir && str_starts(dir, disks[d]) ? dir : NULL;
        for (size_t i = 0; base->job.run && base->job.run[i] && !found; i++)
            found = strstr(base->job.run[i], disks[d]);
    }
    return found ? directory_in(a, found) : NULL;
}

/* While it saves, as far as that is known. NULL: at the moment. */
static const char *when_saving(struct arena *a, const struct scenario *base,
                               const struct generate_run *r) {
    const char *dir = base->job.checkpoint_dir;
    if (r->saves && *r->saves)
        return arena_printf(a, "{event: %s%s}", r->saves, r->saves_told ? "" : ", hold: false");
    if (!dir || strpbrk(dir, "'*?["))
        return NULL;
    return arena_printf(a, "{file: '%s/**', op: write}", generate_below_known(dir));
}

/* When something is at rest: a save is whole and none goes on. */
static const char *when_saved(struct arena *a, const struct generate_run *r) {
    enum { SHARE = 2, OF = 5 };
    if (!r->commits)
        return NULL;
    return arena_printf(a, "{event: checkpoint-commit, nth: %" PRId64 "%s}",
                        1 + r->commits * SHARE / OF, r->saves_told ? "" : ", hold: false");
}

/* How an example's path goes on behind the directory of its job. */
static const char *tail_of(const struct yaml *path) {
    const char *slash = path ? strchr(path->text, '/') : NULL;
    slash = slash ? strchr(slash + 1, '/') : NULL;
    return slash ? slash + 1 : "**";
}

/* It is done to what the job keeps: to any file of it, unless more is said of the example's; and by
 * which kind of operation is left open. */
static void put_arguments(const struct yaml *with, const char *kept, bool lasts, struct buf *out) {
    bool any = lasts || with->length < 2;
    buf_printf(out, ", with: {path: \"%s/%s\"", kept, any ? "**" : tail_of(yaml_get(with, "path")));
    yaml_each(it, with) if (!str_eq(it->key, "path") && !str_eq(it->key, "op"))
        buf_printf(out, ", %s: %s", it->key, it->text);
    buf_puts(out, "}");
}

static const char *entry_of(struct arena *a, const struct generate_fault *f, const char *kept,
                            const char *more) {
    struct diagnostics d = {0};
    BUF_FINI struct buf text = {0};
    const struct yaml *entry = yaml_parse(a, f->on_disk, strlen(f->on_disk), 0, &d);
    buf_printf(&text, "fault: %s, on: node of rank 0", f->name);
    put_arguments(yaml_get(entry, "with"), kept, f->lasts_ns > 0, &text);
    buf_puts(&text, more);
    diagnostics_fini(&d);
    return arena_strdup(a, buf_str(&text));
}

void generate_on_disk(struct arena *a, const struct scenario *base, const struct generate_run *r,
                      struct generate_fault *f) {
    const char *kept = f->on_disk ? find_kept(a, base) : NULL;
    if (!kept)
        return;
    f->restarts = 1;
    if (f->lasts_ns) {
        f->entry = entry_of(a, f, kept, ", for: " DISK_FAILS_FOR);
        f->when = when_saving(a, base, r);
        f->lasts_ns = fails_for_ns;
    } else {
        f->about = arena_printf(a, "%s; then a worker is killed", f->about);
        f->before = entry_of(a, f, kept, "");
        f->before_when = when_saved(a, r);
        f->entry = "fault: worker-kill, on: random of workers";
        f->when = "{after: before}";
        f->outcome = MAY_RESTART;
    }
    f->on_disk = NULL;
}
