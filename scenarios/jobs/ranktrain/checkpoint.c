#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY = 96 };

/* A directory that has been made lasts when the one that it is in has been synced. */
static int sync_parents(int dir, int levels) {
    char up[PATH_MAX] = "";
    for (int i = 0; i < levels && strlen(up) + 4 < sizeof(up); i++) {
        strcat(up, i ? "/.." : "..");
        FILE_CLOSE int parent = openat(dir, up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fsync(parent) < 0)
            return -errno;
    }
    return 0;
}

/* It is there but for the first time. */
int checkpoint_open(const struct checkpoint_place *p, struct err *err) {
    char above[PATH_MAX];
    int missing = 0, made = 0;
    int fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        missing = checkpoint_dir_above(p->dir, above);
        made = file_make_dirs(p->dir, 0777, NULL);
        fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    int r = fd < 0 ? -errno : sync_parents(fd, missing);
    if (r == -ENOENT && made < 0)
        r = made; /* why it could not be made, not that it is not there */
    if (r < 0)
        file_close(&fd);
    return r < 0 ? err_set(err, r, "--checkpoint-dir %s", p->dir) : fd;
}

static bool of_a_higher_round(const struct checkpoint_place *p, const struct manifest *m) {
    return m->round > p->round && strcmp(m->run_id, p->run_id) == 0;
}

/* What of a tensor is in a state: its floats from lo on and below hi, of so many in all. */
struct tensor {
    float *floats;
    size_t lo, hi, all;
};

static struct tensor tensor_of(const struct state *s, int file) {
    struct state_range held = file == 0 ? s->held : s->held_moments;
    return (struct tensor){file == 0 ? s->weights : s->moment[file - 1], held.lo, held.hi,
                           file == 0 ? s->values : s->trained};
}

static size_t tensor_bytes(struct tensor t) {
    return (t.hi - t.lo) * sizeof(float);
}

/* What of a file that begins at float `first` the state holds. */
static void take_floats(struct tensor ret, size_t first, const struct buf *bytes) {
    size_t end = first + bytes->len / sizeof(float);
    size_t lo = first > ret.lo ? first : ret.lo, hi = end < ret.hi ? end : ret.hi;
    if (lo < hi)
        memcpy(ret.floats + (lo - ret.lo), bytes->data + (lo - first) * sizeof(float),
               (hi - lo) * sizeof(float));
}

/* Loads one file of a checkpoint and holds it against the manifest. */
static int load_file(int dir, int64_t step, const struct manifest_file *f, struct tensor ret,
                     size_t wanted, struct err *err) {
    BUF_FINI struct buf bytes = {0};
    char sum[65];
    int r = checkpoint_dir_read(dir, step, f->name, wanted, &bytes, err);
    if (r < 0)
        return r;
    sha256_of(bytes.data, bytes.len, sum);
    if (bytes.len != wanted || f->bytes != (int64_t)wanted)
        return err_say(err, -EBADMSG, "%s has %zu bytes, the manifest says %lld", f->name,
                       bytes.len, (long long)f->bytes);
    if (strcmp(sum, f->sha256) != 0)
        return err_say(err, -EBADMSG, "%s has sha256 %.12s..., the manifest says %.12s...", f->name,
                       sum, f->sha256);
    take_floats(ret, (size_t)f->first, &bytes);
    return 0;
}

/* How long a file must be: whole tensors, or parts that come to one. */
static int file_bytes(const struct state *s, const struct manifest *m, int i, size_t *ret,
                      struct err *err) {
    const struct manifest_file *f = &m->files[i];
    size_t all = tensor_of(s, f->tensor).all * sizeof(float);
    size_t end = (size_t)f->first * sizeof(float) + (size_t)f->bytes;
    bool last = i + 1 == m->n_files || m->files[i + 1].tensor != f->tensor;
    if (m->parts && (end > all || (last && end != all)))
        return err_say(err, -EBADMSG, "%s ends at byte %zu of %zu", f->name, end, all);
    *ret = m->parts ? (size_t)f->bytes : all;
    return 0;
}

static int check_training(const struct checkpoint_place *p, const struct manifest *m,
                          struct err *err) {
    const struct model *own = p->model;
    if (strcmp(m->network, own->name) != 0 || m->width != own->width)
        return err_say(err, -EXDEV,
                       "it is of --network=%s --width=%lld, not of %s of width %d: use another "
                       "--checkpoint-dir",
                       m->network, (long long)m->width, own->name, own->width);
    if (strcmp(m->optimizer, p->optimizer->name) != 0)
        return err_say(err, -EXDEV,
                       "it was trained with --optimizer=%s, not %s: use another --checkpoint-dir",
                       m->optimizer, p->optimizer->name);
    if (m->seed != p->seed)
        return err_say(err, -EXDEV,
                       "it was trained with --seed=%lld, not %lld: use another --checkpoint-dir",
                       (long long)m->seed, (long long)p->seed);
    return p->training ? training_check(p->training, &m->training, err) : 0;
}

int checkpoint_load_step(const struct checkpoint_place *p, int dir, int64_t step, struct state *ret,
                         struct err *err) {
    struct manifest m;
    int r = checkpoint_dir_manifest(dir, step, &m, err);
    if (r < 0)
        return r;
    if (of_a_higher_round(p, &m))
        return err_say(err, -ESTALE, "written by round %lld of this run, and this is round %lld",
                       (long long)m.round, (long long)p->round);
    r = check_training(p, &m, err);
    if (r == 0 && m.parameters != (int64_t)ret->values)
        return err_say(err, -EBADMSG, "it has %lld parameters", (long long)m.parameters);
    for (int i = 0; i < m.n_files && r == 0; i++) {
        size_t wanted = 0;
        r = file_bytes(ret, &m, i, &wanted, err);
        if (r == 0)
            r = load_file(dir, step, &m.files[i], tensor_of(ret, m.files[i].tensor), wanted, err);
    }
    if (r == 0)
        ret->step = (uint64_t)step;
    return r;
}

/* What is gone on from may have been trained otherwise, on purpose. */
static void say_changes(const struct checkpoint_place *p, int dir, int64_t step,
                        checkpoint_ignored_fn *ignored, void *arg) {
    struct manifest m;
    struct err none;
    char changes[TRAINING_TEXT], name[CHECKPOINT_DIR_NAME],
        sentence[sizeof(changes) + PATH_MAX + 128];
    if (!p->training || checkpoint_dir_manifest(dir, step, &m, &none) < 0)
        return;
    training_changes(p->training, &m.training, changes);
    checkpoint_dir_name(step, name);
    snprintf(sentence, sizeof(sentence),
             "%s/%s is gone on from with %s: the model will be another than that of one training",
             p->dir, name, changes);
    if (*changes)
        ignored(arg, 0, sentence);
}

/* Newest first; what is wrong with one makes it no candidate, and is told. */
static int load_newest(const struct checkpoint_place *p, int dir, uint64_t max_step,
                       struct state *ret, checkpoint_ignored_fn *ignored, void *arg,
                       struct err *err) {
    int64_t *steps = NULL;
    int n = checkpoint_dir_steps(dir, &steps, err), found = n < 0 ? n : 0;
    for (int i = 0; i < n && found == 0; i++) {
        struct err why;
        char name[CHECKPOINT_DIR_NAME], sentence[sizeof(why.msg) + PATH_MAX + 64];
        int r = steps[i] > (int64_t)max_step ? err_say(&why, -ERANGE, "beyond the last step, %llu",
                                                       (unsigned long long)max_step)
                                             : checkpoint_load_step(p, dir, steps[i], ret, &why);
        checkpoint_dir_name(steps[i], name);
        if (r == 0) {
            say_changes(p, dir, steps[i], ignored, arg);
            found = 1;
            break;
        }
        snprintf(sentence, sizeof(sentence), "ignored %s/%s: %s", p->dir, name, why.msg);
        ignored(arg, r, sentence);
    }
    free(steps);
    return found;
}

int checkpoint_load(const struct checkpoint_place *p, uint64_t max_step, struct state *ret,
                    char ret_path[PATH_MAX], checkpoint_ignored_fn *ignored, void *arg,
                    struct err *err) {
    FILE_CLOSE int dir = checkpoint_open(p, err);
    if (dir < 0)
        return dir;
    int r = load_newest(p, dir, max_step, ret, ignored, arg, err);
    if (r > 0) {
        char name[CHECKPOINT_DIR_NAME];
        checkpoint_dir_name((int64_t)ret->step, name);
        snprintf(ret_path, PATH_MAX, "%s/%s", p->dir, name);
    }
    return r;
}

/* The descriptors stay open between writing and syncing. */
struct checkpoint_draft {
    int dir, fd[MANIFEST_TENSORS + 1];
    char name[TEMPORARY];
};

static struct checkpoint_draft draft_new(void) {
    struct checkpoint_draft d = {.dir = -1};
    for (int i = 0; i <= MANIFEST_TENSORS; i++)
        d.fd[i] = -1;
    return d;
}

static void draft_close(struct checkpoint_draft *d) {
    for (int i = 0; i <= MANIFEST_TENSORS; i++)
        file_close(&d->fd[i]);
    file_close(&d->dir);
}

static int write_file(struct checkpoint_draft *d, int i, const char *name, const void *p, size_t n,
                      struct err *err) {
    d->fd[i] = openat(d->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (d->fd[i] < 0)
        return err_set(err, -errno, "%s", name);
    int r = file_write_all(d->fd[i], p, n, NULL);
    return r ? err_set(err, r, "write %s", name) : 0;
}

/* All but the files. */
static void describe(const struct checkpoint_place *p, const struct state *s,
                     struct manifest *ret) {
    *ret = (struct manifest){.step = (int64_t)s->step,
                             .round = p->round,
                             .world_size = p->world,
                             .seed = p->seed,
                             .width = p->model->width,
                             .parameters = (int64_t)s->values};
    snprintf(ret->run_id, sizeof(ret->run_id), "%s", p->run_id);
    snprintf(ret->network, sizeof(ret->network), "%s", p->model->name);
    snprintf(ret->optimizer, sizeof(ret->optimizer), "%s", p->optimizer->name);
    if (p->training)
        ret->training = *p->training;
}

static void describe_files(const struct checkpoint_place *p, const struct state *s,
                           struct manifest *m) {
    manifest_name_files(m, p->optimizer, 0);
    for (int i = 0; i < m->n_files; i++) {
        struct tensor t = tensor_of(s, i);
        m->files[i].bytes = (int64_t)tensor_bytes(t);
        sha256_of(t.floats, tensor_bytes(t), m->files[i].sha256);
    }
    memcpy(m->model, m->files[0].sha256, sizeof(m->model));
}

static int draft_write(struct checkpoint_draft *d, const struct checkpoint_place *p, int place,
                       const struct state *s, struct err *err) {
    if (mkdirat(place, d->name, 0777) < 0)
        return err_set(err, -errno, "make %s", d->name);
    d->dir = openat(place, d->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir < 0)
        return err_set(err, -errno, "open %s", d->name);
    struct manifest m;
    BUF_FINI struct buf text = {0};
    describe(p, s, &m);
    describe_files(p, s, &m);
    manifest_write(&m, &text);
    int r = 0;
    for (int i = 0; i < m.n_files && r == 0; i++) {
        struct tensor t = tensor_of(s, i);
        r = write_file(d, i, m.files[i].name, t.floats, tensor_bytes(t), err);
    }
    return r == 0 ? write_file(d, m.n_files, MANIFEST_NAME, text.data, text.len, err) : r;
}

static int draft_sync(const struct checkpoint_draft *d, struct err *err) {
    for (int i = 0; i <= MANIFEST_TENSORS; i++)
        if (d->fd[i] >= 0 && fsync(d->fd[i]) < 0)
            return err_set(err, -errno, "fsync");
    return fsync(d->dir) < 0 ? err_set(err, -errno, "fsync %s", d->name) : 0;
}

/* Refuses to go on when a higher round of this run has written here: this process is a leftover. */
static int check_fence(const struct checkpoint_place *p, int place, struct err *err) {
    int64_t *steps = NULL;
    int n = checkpoint_dir_steps(place, &steps, err), r = n < 0 ? n : 0;
    for (int i = 0; i < n && r == 0; i++) {
        struct manifest m;
        struct err ignored;
        if (checkpoint_dir_manifest(place, steps[i], &m, &ignored) == 0 && of_a_higher_round(p, &m))
            r = err_say(err, -ESTALE,
                        "round %lld has written here, and this is round %lld, which is "
                        "over",
                        (long long)m.round, (long long)p->round);
    }
    free(steps);
    return r;
}

/* Gives the draft its final name. A directory of that name is replaced unless it is complete and
 * holds the same. */
static int publish(const struct checkpoint_place *p, int place, const struct checkpoint_draft *d,
                   const struct state *s, struct err *err) {
    char name[CHECKPOINT_DIR_NAME], aside[TEMPORARY + 8];
    checkpoint_dir_name((int64_t)s->step, name);
    if (renameat(place, d->name, place, name) < 0) {
        if (errno != ENOTEMPTY && errno != EEXIST)
            return err_set(err, -errno, "rename to %s", name);
        struct err why;
        struct state there;
        state_init_part(&there, p->model, p->optimizer, s->held, s->held_moments);
        int r = checkpoint_load_step(p, place, (int64_t)s->step, &there, &why);
        bool same = r == 0 && state_is_equal(&there, s);
        state_fini(&there);
        if (r == -ESTALE) { /* it came after the fence was looked at */
            *err = why;
            return r;
        }
        if (same && state_is_whole(s))
            return 0;
        snprintf(aside, sizeof(aside), "%s.old", d->name);
        if (renameat(place, name, place, aside) < 0 || renameat(place, d->name, place, name) < 0)
            return err_set(err, -errno, "replace %s", name);
        checkpoint_dir_remove(place, aside);
    }
    return fsync(place) < 0 ? err_set(err, -errno, "fsync") : 0;
}

static void prune(const struct checkpoint_place *p, int place, uint64_t step) {
    int64_t *steps = NULL;
    struct err ignored;
    int n = checkpoint_dir_steps(place, &steps, &ignored), kept = 0;
    struct leases leases;
    leases_look(place, &leases);
    for (int i = 0; i < n; i++) {
        char name[CHECKPOINT_DIR_NAME];
        checkpoint_dir_name(steps[i], name);
        if (steps[i] <= (int64_t)step && kept++ >= p->keep && !leases_want(&leases, steps[i]))
            checkpoint_dir_remove(place, name);
    }
    free(steps);
}

typedef int say_fn(struct rankquake *q, uint64_t step, const char *path);

/* A handle is for one thread at a time. */
static void tell(const struct checkpoint_place *p, say_fn *say, struct rankquake *q, uint64_t step,
                 const char *path) {
    if (p->speaking)
        pthread_mutex_lock(p->speaking);
    say(q, step, path);
    if (p->speaking)
        pthread_mutex_unlock(p->speaking);
}

static int save(const struct checkpoint_place *p, int place, const struct state *s,
                struct rankquake *q, struct err *err) {
    char name[CHECKPOINT_DIR_NAME], path[PATH_MAX];
    struct checkpoint_draft d = draft_new();
    checkpoint_dir_name((int64_t)s->step, name);
    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    snprintf(d.name, sizeof(d.name), ".%s.round-%lld.pid-%ld", name, (long long)p->round,
             (long)getpid());
    tell(p, rankquake_checkpoint_begin, q, s->step, path);
    checkpoint_dir_sweep(place, p->round);
    int r = draft_write(&d, p, place, s, err);
    if (r == 0) {
        tell(p, rankquake_checkpoint_write, q, s->step, path);
        r = draft_sync(&d, err);
    }
    if (r == 0)
        r = check_fence(p, place, err);
    if (r == 0)
        r = publish(p, place, &d, s, err);
    draft_close(&d);
    checkpoint_dir_remove(place, d.name);
    if (r < 0)
        return r;
    tell(p, rankquake_checkpoint_commit, q, s->step, path);
    prune(p, place, s->step);
    return 0;
}

static int named(const struct checkpoint_place *p, uint64_t step, int r, struct err *err) {
    return r < 0
               ? err_wrap(err, "checkpoint of step %llu in %s: ", (unsigned long long)step, p->dir)
               : 0;
}

int checkpoint_save(const struct checkpoint_place *p, const struct state *s, struct rankquake *q,
                    struct err *err) {
    FILE_CLOSE int place = checkpoint_open(p, err);
    if (place < 0)
        return place;
    return named(p, s->step, save(p, place, s, q, err), err);
}

/* ---- in parts ---- */

static void parts_name(const struct checkpoint_place *p, uint64_t step, int parts,
                       char ret[TEMPORARY]) {
    snprintf(ret, TEMPORARY, ".step-%08llu.round-%lld.parts-%d", (unsigned long long)step,
             (long long)p->round, parts);
}

static void final_path(const struct checkpoint_place *p, uint64_t step, char ret[PATH_MAX]) {
    char name[CHECKPOINT_DIR_NAME];
    checkpoint_dir_name((int64_t)step, name);
    snprintf(ret, PATH_MAX, "%s/%s", p->dir, name);
}

int checkpoint_parts_begin(const struct checkpoint_place *p, uint64_t step, int parts,
                           struct rankquake *q, struct err *err) {
    FILE_CLOSE int place = checkpoint_open(p, err);
    char draft[TEMPORARY], path[PATH_MAX];
    if (place < 0)
        return place;
    parts_name(p, step, parts, draft);
    final_path(p, step, path);
    tell(p, rankquake_checkpoint_begin, q, step, path);
    checkpoint_dir_sweep(place, p->round);
    int r = mkdirat(place, draft, 0777) < 0 ? err_set(err, -errno, "make %s", draft) : 0;
    return named(p, step, r, err);
}

static struct state_range share_of(size_t all, int part, int parts) {
    return (struct state_range){all * (size_t)part / (size_t)parts,
                                all * ((size_t)part + 1) / (size_t)parts};
}

void checkpoint_slice_init(const struct checkpoint_place *p, int part, int parts,
                           struct state *ret) {
    state_init_part(ret, p->model, p->optimizer, share_of(p->model->values, part, parts),
                    share_of(p->model->trained, part, parts));
}

/* What a rank saves of a tensor: its part of the whole, or all that it has of it. */
static struct tensor cut(struct tensor t, int part, int parts) {
    struct state_range share = share_of(t.all, part, parts);
    if (t.hi - t.lo < t.all)
        return t;
    return (struct tensor){t.floats + share.lo, share.lo, share.hi, t.all};
}

static int write_parts(struct checkpoint_draft *d, const struct checkpoint_place *p,
                       const struct state *s, int part, int parts, struct checkpoint_part *ret,
                       struct err *err) {
    struct manifest m;
    int r = 0;
    manifest_name_files(&m, p->optimizer, parts);
    for (int i = 0; i <= s->moments && r == 0; i++) {
        struct tensor t = cut(tensor_of(s, i), part, parts);
        r = write_file(d, i, m.files[i * parts + part].name, t.floats, tensor_bytes(t), err);
        sha256_of(t.floats, tensor_bytes(t), ret->sha256[i]);
        ret->first[i] = (int64_t)t.lo;
        ret->bytes[i] = (int64_t)tensor_bytes(t);
    }
    return r == 0 ? draft_sync(d, err) : r;
}

int checkpoint_part_write(const struct checkpoint_place *p, const struct state *s, int part,
                          int parts, struct checkpoint_part *ret, struct err *err) {
    FILE_CLOSE int place = checkpoint_open(p, err);
    struct checkpoint_draft d = draft_new();
    if (place < 0)
        return place;
    parts_name(p, s->step, parts, d.name);
    d.dir = openat(place, d.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = d.dir < 0 ? err_set(err, -errno, "open %s", d.name)
                      : write_parts(&d, p, s, part, parts, ret, err);
    draft_close(&d);
    return named(p, s->step, r, err);
}

/* The model's hash, of what the ranks have written: none of them has all of it. */
static int hash_parts(int draft, const struct manifest *m, char ret[65], struct err *err) {
    struct sha256 sum;
    sha256_init(&sum);
    for (int i = 0; i < m->parts; i++) {
        BUF_FINI struct buf bytes = {0};
        FILE_CLOSE int fd = openat(draft, m->files[i].name, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : file_read_fd(fd, (size_t)m->files[i].bytes, &bytes, NULL);
        if (r < 0)
            return err_set(err, r, "%s", m->files[i].name);
        sha256_update(&sum, bytes.data, bytes.len);
    }
    sha256_hex(&sum, ret);
    return 0;
}

static int describe_parts(const struct checkpoint_place *p, const struct state *s, int draft,
                          int parts, const struct checkpoint_part *written, struct manifest *m,
                          struct err *err) {
    describe(p, s, m);
    manifest_name_files(m, p->optimizer, parts);
    for (int i = 0; i < m->n_files; i++) {
        struct manifest_file *f = &m->files[i];
        const struct checkpoint_part *from = &written[i % parts];
        f->first = from->first[f->tensor];
        f->bytes = from->bytes[f->tensor];
        memcpy(f->sha256, from->sha256[f->tensor], sizeof(f->sha256));
    }
    if (!state_is_whole(s))
        return hash_parts(draft, m, m->model, err);
    state_hash(s, m->model);
    return 0;
}

static int complete(struct checkpoint_draft *d, const struct checkpoint_place *p, int place,
                    const struct state *s, const struct manifest *m, struct rankquake *q,
                    struct err *err) {
    BUF_FINI struct buf text = {0};
    char path[PATH_MAX];
    final_path(p, s->step, path);
    manifest_write(m, &text);
    int r = write_file(d, 0, MANIFEST_NAME, text.data, text.len, err);
    if (r == 0) {
        tell(p, rankquake_checkpoint_write, q, s->step, path);
        r = draft_sync(d, err);
    }
    if (r == 0)
        r = check_fence(p, place, err);
    if (r == 0)
        r = publish(p, place, d, s, err);
    checkpoint_dir_remove(place, d->name);
    if (r < 0)
        return r;
    tell(p, rankquake_checkpoint_commit, q, s->step, path);
    prune(p, place, s->step);
    return 0;
}

int checkpoint_parts_commit(const struct checkpoint_place *p, const struct state *s, int parts,
                            const struct checkpoint_part *written, struct rankquake *q,
                            struct err *err) {
    FILE_CLOSE int place = checkpoint_open(p, err);
    struct checkpoint_draft d = draft_new();
    struct manifest m;
    if (place < 0)
        return place;
    parts_name(p, s->step, parts, d.name);
    d.dir = openat(place, d.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = d.dir < 0 ? err_set(err, -errno, "open %s", d.name)
                      : describe_parts(p, s, d.dir, parts, written, &m, err);
    if (r == 0)
        r = complete(&d, p, place, s, &m, q, err);
    draft_close(&d);
    return named(p, s->step, r, err);
}
