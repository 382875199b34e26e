#include "harness/run/built.h"

#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/sys/process.h"
#include "harness/plan/building.h"
#include "harness/run/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUILT_VERSION = 1, OUTPUT_MAX = 256 << 20, SAID_MAX = 64 << 10, SAID_SHOWN = 400 };

struct building {
    const struct plan *plan;
    const struct build_spec *spec;
    struct folder kept; /* built/KEY, locked */
    struct built *ret;
};

/* ---- from the cache ---- */

static bool is_in_place(const char *path, const char *sum, bool program) {
    BUF_FINI struct buf content = {0};
    char hex[65];
    if (file_read(path, OUTPUT_MAX, &content, NULL) < 0)
        return false;
    sha256_of(content.data, content.len, hex);
    return str_eq(hex, sum) && (access(path, X_OK) == 0) == program;
}

static int put_in_place(const char *path, const struct buf *content, bool program,
                        struct err *err) {
    char folder[PATH_MAX];
    str_copy(folder, sizeof(folder), path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    int r = slash ? file_make_dirs(folder, 0777, err) : 0;
    if (r == 0 && unlink(path) < 0 && errno != ENOENT) /* a link leads elsewhere */
        r = err_set(err, -errno, "job.build.outputs: %s cannot be renewed", path);
    if (r == 0)
        r = file_write_atomic(path, content->data, content->len, err);
    if (r == 0 && program && chmod(path, 0755) < 0)
        r = err_set(err, -errno, "chmod %s", path);
    return r;
}

/* One that is not what it was counts as none: false, and it is built anew. */
static bool take_one(struct building *b, size_t i, const struct json *one, int *ret_code,
                     struct err *err) {
    const char *path = b->spec->outputs[i], *sum = json_get_string(one, "sha256", "");
    bool program = json_get_bool(one, "program", false);
    BUF_FINI struct buf content = {0};
    char name[24], hex[65];
    if (!str_eq(json_get_string(one, "path", ""), path))
        return false;
    if (is_in_place(path, sum, program))
        return true;
    snprintf(name, sizeof(name), "%zu", i);
    if (folder_read(&b->kept, name, OUTPUT_MAX, &content, NULL) < 0)
        return false;
    sha256_of(content.data, content.len, hex);
    if (!str_eq(hex, sum))
        return false;
    b->ret->how = BUILT_KEPT;
    *ret_code = put_in_place(path, &content, program, err);
    return *ret_code == 0;
}

static bool take(struct building *b, int *ret_code, struct err *err) {
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    if (folder_read(&b->kept, "built.json", 1 << 20, &text, NULL) < 0)
        return false;
    const struct json *j = json_parse(&a, buf_str(&text), text.len, NULL);
    const struct json *outputs = json_get(j, "outputs");
    size_t n = 0;
    bool all = json_get_i64(j, "v", 0) == BUILT_VERSION && outputs &&
               outputs->length == b->spec->outputs_n;
    b->ret->how = BUILT_HERE;
    json_each(one, outputs) all = all && take_one(b, n++, one, ret_code, err);
    return all;
}

/* ---- by the command ---- */

/* The last lines that it printed, for the sentence of the error. */
static const char *last_words(int fd, struct buf *said) {
    off_t size = lseek(fd, 0, SEEK_END);
    lseek(fd, size > SAID_MAX ? size - SAID_MAX : 0, SEEK_SET);
    file_read_fd(fd, SAID_MAX, said, NULL);
    while (said->len && strchr(" \n\r", said->data[said->len - 1]))
        said->len--;
    for (size_t i = 0; i < said->len; i++) /* the error is one line */
        said->data[i] = said->data[i] == '\n' ? '|' : said->data[i];
    const char *text = buf_str(said);
    return said->len > SAID_SHOWN ? text + said->len - SAID_SHOWN : text;
}

/* Returns 0, or -ETIME: it was killed. */
static int wait_for(const struct build_spec *s, const struct process *p, int *ret_status) {
    int r = process_reap(p, s->within_ns, ret_status);
    if (r == -ETIME) {
        process_signal_descendants(p->pid, SIGKILL);
        process_signal(p, SIGKILL);
        process_reap(p, -1, ret_status);
    }
    return r;
}

static int command(const struct build_spec *s, struct err *err) {
    FILE_CLOSE int said = memfd_create("build", MFD_CLOEXEC);
    FILE_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    BUF_FINI struct buf words = {0};
    struct process child = PROCESS_NONE;
    struct process_spawn spawn = {
        .argv = s->run, .fds = (const int[]){null, said, said}, .death_signal = SIGKILL};
    char how[64];
    int status = 0, r = process_spawn(&spawn, &child, err);
    if (r < 0) {
        err_wrap(err, "job.build.run: ");
        return r;
    }
    r = wait_for(s, &child, &status);
    process_close(&child);
    if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    const char *last = last_words(said, &words);
    if (r == -ETIME)
        return err_say(err, -EPROTO,
                       "job.build.run: %s had not ended after %.4g s (job.build.within) and was "
                       "killed%s%s",
                       s->run[0], (double)s->within_ns / 1e9, *last ? "; its last words: " : "",
                       last);
    return err_say(err, -EPROTO, "job.build.run: %s ended with %s%s%s", s->run[0],
                   process_status_text(status, how, sizeof(how)), *last ? ": " : "", last);
}

static int keep_one(struct building *b, size_t i, struct json_writer *w, struct err *err) {
    const char *path = b->spec->outputs[i];
    BUF_FINI struct buf content = {0};
    char name[24], hex[65];
    struct stat st;
    if (stat(path, &st) < 0)
        return err_say(err, -ENOENT, "job.build.outputs: the command has not made %s", path);
    if (!S_ISREG(st.st_mode))
        return err_say(err, -EINVAL, "job.build.outputs: %s is no file; name the files in it",
                       path);
    int r = file_read(path, OUTPUT_MAX, &content, err);
    snprintf(name, sizeof(name), "%zu", i);
    if (r == 0)
        r = folder_write_synced(&b->kept, name, buf_str(&content), content.len, err);
    if (r)
        return r;
    sha256_of(content.data, content.len, hex);
    json_object(w, NULL);
    json_put_string(w, "path", path);
    json_put_string(w, "sha256", hex);
    json_put_bool(w, "program", access(path, X_OK) == 0);
    json_end_object(w);
    return 0;
}

/* built.json comes last: whoever finds it finds what it names. */
static int keep(struct building *b, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    int r = 0;
    folder_unlink(&b->kept, "built.json");
    json_object(&w, NULL);
    json_put_i64(&w, "v", BUILT_VERSION);
    json_put_i64(&w, "took_ms", b->ret->took_ns / 1000000);
    json_array(&w, "outputs");
    for (size_t i = 0; i < b->spec->outputs_n && r == 0; i++)
        r = keep_one(b, i, &w, err);
    json_end_array(&w);
    json_end_object(&w);
    return r ? r : folder_write_synced(&b->kept, "built.json", buf_str(&text), text.len, err);
}

static int make_it(struct building *b, struct err *err) {
    char after[65];
    int64_t began_ns = clock_monotonic_ns();
    int r = command(b->spec, err);
    b->ret->took_ns = clock_monotonic_ns() - began_ns;
    b->ret->how = BUILT_NOW;
    if (r == 0)
        r = building_key(b->spec, after, err);
    if (r == 0 && !str_eq(after, b->ret->key))
        r = err_say(err, -EPROTO,
                    "job.build: the command has changed what it is built of; name no input that it "
                    "writes");
    return r ? r : keep(b, err);
}

/* ---- the whole ---- */

static int open_kept(struct building *b, struct err *err) {
    char path[PATH_MAX];
    int r = cache_dir("built", b->ret->key, path, sizeof(path), err);
    if (r == 0)
        r = cache_enter(path, true, &b->kept, NULL, err);
    if (r == 0 && flock(b->kept.fd, LOCK_EX) < 0)
        r = err_set(err, -errno, "lock %s", path);
    return r;
}

int built_ready(const struct plan *p, bool make, bool fresh, struct built *ret, struct err *err) {
    struct building b = {
        .plan = p, .spec = &p->scenario->job.build, .kept = FOLDER_NONE, .ret = ret};
    *ret = (struct built){.how = BUILT_NOTHING};
    if (!b.spec->run)
        return 0;
    int r = building_key(b.spec, ret->key, err), taken = 0;
    if (r == 0)
        r = open_kept(&b, err);
    if (r == 0 && (fresh || !take(&b, &taken, err)) && taken == 0) {
        ret->how = BUILT_MISSING;
        r = make ? make_it(&b, err) : 0;
    }
    folder_close(&b.kept);
    return r ? r : taken;
}
