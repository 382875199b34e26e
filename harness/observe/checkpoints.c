#include "harness/observe/checkpoints.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MANIFEST_MAX = 64 * 1024, FILE_MAX = 1 << 30 };

/* One checkpoint directory as it was when it was verified. */
struct checkpoint {
    struct list link;
    char name[64];
    char seen[65]; /* what its files looked like: see fingerprint */
    int64_t step, round;
    char why[256];  /* "": complete */
    char model[65]; /* SHA-256 of its weights, where its manifest names a model; "" */
    bool there;     /* in the listing being read */
};

struct checkpoints {
    char *dir;
    const struct folder *within; /* dir lies below it; NULL: it does not */
    struct list known;
    int64_t drafts; /* what lies beside them and is called as something unfinished */
};

struct checkpoints *checkpoints_new(const char *dir, const struct folder *within) {
    struct checkpoints *c = mem_new(struct checkpoints);
    c->dir = mem_strdup(dir);
    size_t n = within ? strlen(within->path) : 0;
    if (n && strncmp(dir, within->path, n) == 0 && dir[n] == '/')
        c->within = within;
    list_init(&c->known);
    return c;
}

struct checkpoints *checkpoints_free(struct checkpoints *c) {
    if (!c)
        return NULL;
    list_each_safe(it, next, &c->known) free(list_entry(it, struct checkpoint, link));
    free(c->dir);
    free(c);
    return NULL;
}

/* ---- verifying one ---- */

/* What has been read of the weights, in one file or in parts that follow upon one another. */
struct weights {
    struct sha256 sum;
    int64_t bytes;
};

static bool is_of_weights(const struct json *file) {
    return str_eq(json_get_string(file, "tensor", ""), "weights") ||
           str_eq(json_get_string(file, "name", ""), "weights.f32");
}

static int take_weights(struct weights *w, const struct json *file, const struct buf *content,
                        struct err *err) {
    int64_t before = json_get_i64(file, "first", 0) * 4;
    if (before != w->bytes)
        return err_say(err, -EBADMSG,
                       "%s begins at byte %lld of the weights, and %lld come before it",
                       json_get_string(file, "name", ""), (long long)before, (long long)w->bytes);
    sha256_update(&w->sum, content->data, content->len);
    w->bytes += (int64_t)content->len;
    return 0;
}

static int verify_file(const struct folder *dir, const char *in, const struct json *file,
                       struct weights *weights, struct err *err) {
    char hex[65];
    const char *name = json_get_string(file, "name", "");
    const char *wanted = json_get_string(file, "sha256", "");
    char path[PATH_MAX];
    if (!*name || strchr(name, '/'))
        return err_say(err, -EBADMSG, "its manifest lists a file without a proper name");
    snprintf(path, sizeof(path), "%s/%s", in, name);
    BUF_FINI struct buf content = {0};
    int r = folder_read(dir, path, FILE_MAX, &content, err);
    sha256_of(content.data, content.len, hex);
    if (r == 0 && (int64_t)content.len != json_get_i64(file, "bytes", -1))
        r = err_say(err, -EBADMSG, "%s has %zu bytes, its manifest says %lld", name, content.len,
                    (long long)json_get_i64(file, "bytes", -1));
    else if (r == 0 && !str_eq(hex, wanted))
        r = err_say(err, -EBADMSG, "%s does not have the checksum of its manifest", name);
    return r == 0 && is_of_weights(file) ? take_weights(weights, file, &content, err) : r;
}

static int verify_manifest(struct checkpoint *c, const struct folder *dir, const struct json *m,
                           struct err *err) {
    if (!str_eq(json_get_string(m, "format", ""), "ranktrain-checkpoint"))
        return err_say(err, -EBADMSG, "its manifest is not of the format ranktrain-checkpoint");
    if (json_get_i64(m, "step", -1) != c->step)
        return err_say(err, -EBADMSG, "its manifest is of step %lld",
                       (long long)json_get_i64(m, "step", -1));
    c->round = json_get_i64(m, "round", 0);
    const struct json *files = json_get(m, "files");
    if (!json_first(files))
        return err_say(err, -EBADMSG, "its manifest lists no files");
    struct weights weights = {0};
    sha256_init(&weights.sum);
    json_each(f, files) {
        int r = verify_file(dir, c->name, f, &weights, err);
        if (r < 0)
            return r;
    }
    if (*json_get_string(m, "model", "") && weights.bytes)
        sha256_hex(&weights.sum, c->model);
    return 0;
}

static void verify(struct checkpoint *c, const struct folder *dir) {
    char path[128];
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    struct err err = {0};
    c->model[0] = '\0';
    snprintf(path, sizeof(path), "%s/manifest.json", c->name);
    int r = folder_read(dir, path, MANIFEST_MAX, &text, &err);
    const struct json *m = r == 0 ? json_parse(&a, buf_str(&text), text.len, &err) : NULL;
    r = m ? verify_manifest(c, dir, m, &err) : -EBADMSG;
    str_copy(c->why, sizeof(c->why), r < 0 ? err.msg : "");
}

/* ---- reading the directory ---- */

/* "step-00000025": at least eight digits; anything else is not a checkpoint. */
static bool step_of(const char *name, int64_t *ret) {
    const char *digits = name + strlen("step-");
    return str_starts(name, "step-") && strlen(digits) >= 8 &&
           strspn(digits, "0123456789") == strlen(digits) && strlen(name) < 64 &&
           str_to_i64(digits, 0, INT64_MAX, ret);
}

static struct checkpoint *find(struct checkpoints *c, const char *name) {
    list_each(it, &c->known) {
        struct checkpoint *k = list_entry(it, struct checkpoint, link);
        if (str_eq(k->name, name))
            return k;
    }
    struct checkpoint *k = mem_new(struct checkpoint);
    str_copy(k->name, sizeof(k->name), name);
    list_append(&c->known, &k->link);
    return k;
}

/* Names, sizes and times of change of all files: when it is the same, so is what was verified. */
static bool fingerprint(const struct folder *dir, const char *name, char ret[65]) {
    TEXTS_FINI struct texts names = {0};
    struct sha256 sum;
    struct folder one;
    if (folder_enter(&one, dir, name, NULL) != 0)
        return false;
    int r = folder_list(&one, ".", NULL, &names, NULL);
    sha256_init(&sum);
    for (size_t i = 0; i < names.n; i++) {
        const char *file = names.v[i];
        struct stat st;
        if (!str_eq(file, "..") && fstatat(one.fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            int64_t facts[] = {(int64_t)st.st_ino, st.st_size, st.st_ctim.tv_sec,
                               st.st_ctim.tv_nsec};
            sha256_update(&sum, file, strlen(file) + 1);
            sha256_update(&sum, facts, sizeof(facts));
        }
    }
    folder_close(&one);
    sha256_hex(&sum, ret);
    return r == 0;
}

static void look_at(struct checkpoints *c, const struct folder *dir, const char *name,
                    int64_t step) {
    char now[65];
    if (!fingerprint(dir, name, now))
        return;
    struct checkpoint *k = find(c, name);
    k->there = true;
    if (str_eq(k->seen, now))
        return;
    memcpy(k->seen, now, sizeof(now));
    k->step = step;
    verify(k, dir);
}

static int open_dir(const struct checkpoints *c, struct folder *ret) {
    return c->within ? folder_enter(ret, c->within, c->dir + strlen(c->within->path) + 1, NULL)
                     : folder_open(ret, c->dir, NULL);
}

/* ".step-00000025.3", "model.tmp", "tmp-abc", "step-25.part". */
static bool is_draft(const char *name) {
    return (*name == '.' && !str_eq(name, ".") && !str_eq(name, "..")) || strstr(name, "tmp") ||
           strstr(name, ".part") || strstr(name, "draft") || str_ends(name, "~");
}

void checkpoints_refresh(struct checkpoints *c) {
    c->drafts = 0;
    list_each(it, &c->known) list_entry(it, struct checkpoint, link)->there = false;
    TEXTS_FINI struct texts names = {0};
    struct folder dir;
    if (open_dir(c, &dir) != 0)
        return;
    folder_list(&dir, ".", NULL, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        int64_t step;
        if (step_of(names.v[i], &step))
            look_at(c, &dir, names.v[i], step);
        else
            c->drafts += is_draft(names.v[i]);
    }
    folder_close(&dir);
}

static void put_one(struct json_writer *w, const struct checkpoint *k) {
    json_object(w, NULL);
    if (!k->why[0]) {
        json_put_i64(w, "step", k->step);
        json_put_i64(w, "round", k->round);
    }
    json_put_string(w, "path", k->name);
    if (k->why[0])
        json_put_string(w, "why", k->why);
    else if (k->model[0])
        json_put_string(w, "model", k->model);
    json_end_object(w);
}

static void put_list(struct checkpoints *c, struct json_writer *w, const char *key, bool complete) {
    json_array(w, key);
    list_each(it, &c->known) {
        struct checkpoint *k = list_entry(it, struct checkpoint, link);
        if (k->there && complete == !k->why[0])
            put_one(w, k);
    }
    json_end_array(w);
}

void checkpoints_put(struct checkpoints *c, struct json_writer *w) {
    checkpoints_refresh(c);
    int64_t newest = -1;
    list_each(it, &c->known) {
        struct checkpoint *k = list_entry(it, struct checkpoint, link);
        if (k->there && !k->why[0] && k->step > newest)
            newest = k->step;
    }
    json_put_string(w, "dir", c->dir);
    json_put_i64(w, "newest", newest);
    put_list(c, w, "complete", true);
    put_list(c, w, "damaged", false);
    json_put_i64(w, "drafts", c->drafts);
}
