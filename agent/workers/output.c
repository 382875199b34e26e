#include "agent/workers/output.h"

#include "agent/workers/error_file.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int output_check(const char *log_dir, struct err *err) {
    if (!log_dir || str_eq(log_dir, "/dev/null"))
        return 0;
    int code = file_make_dirs(log_dir, 0777, err);
    if (!code && access(log_dir, W_OK | X_OK) < 0)
        code = err_set(err, -errno, "write into %s", log_dir);
    return code ? err_wrap(err, "--log-dir: ") : 0;
}

static bool any_to_file(const struct worker_output *w, int n) {
    for (int i = 0; w->to_file && i < n; i++)
        if (w->to_file[i])
            return true;
    return false;
}

/* The folder that the run's own is made in. Returns 0, or -errno. */
static int base_dir(const struct output *o, char *ret, size_t size, struct err *err) {
    if (o->what->log_dir) {
        str_copy(ret, size, o->what->log_dir);
        return file_make_dirs(ret, 0777, err);
    }
    if (o->scratch) {
        str_copy(ret, size, file_temp_base());
        return 0;
    }
    snprintf(ret, size, "%s/torchelastic_XXXXXXXX", file_temp_base());
    return file_make_temp_dir(ret, err);
}

int output_init(struct output *o, const struct worker_output *what, int workers, const char *run_id,
                struct err *err) {
    char id[128], base[PATH_MAX];
    *o = (struct output){.what = what, .scratch = !what->log_dir && !any_to_file(what, workers)};
    if (str_eq(what->log_dir, "/dev/null"))
        return 0;
    str_copy(id, sizeof(id), run_id);
    for (char *p = id; *p; p++)
        if (*p == '/')
            *p = '_';
    int code = base_dir(o, base, sizeof(base), err);
    if (code)
        return code;
    int n = snprintf(o->run_dir, sizeof(o->run_dir), "%s/%s_XXXXXXXX", base,
                     o->scratch ? "rankrun" : id);
    if (n >= (int)sizeof(o->run_dir))
        code = err_set(err, -ENAMETOOLONG, "log directory %s", base);
    if (!code)
        code = file_make_temp_dir(o->run_dir, err);
    if (code)
        o->run_dir[0] = '\0';
    return code;
}

static void attempt_dir(const struct output *o, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s/attempt_%d", o->run_dir, o->restart_count);
}

static int keep_last(const struct output *o, struct err *err) {
    char now[PATH_MAX], kept[PATH_MAX];
    attempt_dir(o, now);
    snprintf(kept, sizeof(kept), "%s/attempt_%d_round_%" PRIu64, o->run_dir, o->restart_count,
             o->round);
    return rename(now, kept) < 0 ? err_set(err, -errno, "rename %s to %s", now, kept) : 0;
}

int output_begin(struct output *o, const struct worker_spec *s, struct err *err) {
    char attempt[PATH_MAX], dir[PATH_MAX];
    if (!o->run_dir[0])
        return 0;
    int code = 0;
    if (!o->scratch && o->attempted && o->restart_count == s->restart_count)
        code = keep_last(o, err);
    o->restart_count = s->restart_count;
    o->round = s->round;
    if (o->scratch)
        return file_make_dirs(o->run_dir, 0700, err); /* who cleans /tmp may have removed it */
    attempt_dir(o, attempt);
    for (int i = 0; !code && i < s->local_world_size; i++) {
        int n = snprintf(dir, sizeof(dir), "%s/%d", attempt, i);
        code = n < PATH_MAX ? file_make_dirs(dir, 0777, err)
                            : err_set(err, -ENAMETOOLONG, "log directory %s", attempt);
    }
    o->attempted = !code;
    return code;
}

static void name_file(const char *attempt, int local_rank, const char *name, char ret[PATH_MAX]) {
    if (snprintf(ret, PATH_MAX, "%s/%d/%s", attempt, local_rank, name) >= PATH_MAX)
        ret[0] = '\0'; /* output_begin has refused such a directory */
}

/* Nobody is promised a layout of what will be removed: directories would cost a start a third of
 * what the agent itself takes for it. */
static void name_scratch_file(const struct output *o, int local_rank, char ret[PATH_MAX]) {
    snprintf(ret, PATH_MAX, "%s/round_%" PRIu64 "_%d_error.json", o->run_dir, o->round, local_rank);
}

/* A stream of a worker: a file, nowhere, or "" for the console. */
static void name_stream(const struct output *o, const char *attempt, int local_rank, int stream,
                        char ret[PATH_MAX]) {
    const struct worker_output *w = o->what;
    ret[0] = '\0';
    if (w->to_file && (w->to_file[local_rank] & stream))
        name_file(attempt, local_rank, stream == STREAM_OUT ? "stdout.log" : "stderr.log", ret);
    if ((w->hidden && w->hidden[local_rank] && !ret[0]) || (ret[0] && !o->run_dir[0]))
        str_copy(ret, PATH_MAX, "/dev/null");
}

void output_files(const struct output *o, int local_rank, struct output_files *ret) {
    char attempt[PATH_MAX];
    *ret = (struct output_files){"", "", ""};
    attempt_dir(o, attempt);
    if (o->run_dir[0] && o->scratch)
        name_scratch_file(o, local_rank, ret->error_json);
    else if (o->run_dir[0])
        name_file(attempt, local_rank, "error.json", ret->error_json);
    name_stream(o, attempt, local_rank, STREAM_OUT, ret->out);
    name_stream(o, attempt, local_rank, STREAM_ERR, ret->err);
}

void output_filtered_file(const struct output *o, int stream, char ret[PATH_MAX]) {
    char attempt[PATH_MAX];
    attempt_dir(o, attempt);
    if (snprintf(ret, PATH_MAX, "%s/filtered_%s.log", attempt,
                 stream == STREAM_OUT ? "stdout" : "stderr") >= PATH_MAX)
        ret[0] = '\0';
}

/* Who writes into files sees no error of a full disk: their own words of it are lost there. */
static bool is_full(const struct output *o, const struct output_files *files) {
    struct statvfs fs;
    return o->run_dir[0] && (files->out[0] || files->err[0]) && statvfs(o->run_dir, &fs) == 0 &&
           fs.f_blocks > 0 && fs.f_bavail == 0;
}

void output_error_text(const struct output *o, int local_rank, char *ret, size_t size) {
    struct output_files files;
    output_files(o, local_rank, &files);
    ret[0] = '\0';
    if (files.error_json[0])
        error_file_text(files.error_json, ret, size);
    if (!ret[0] && is_full(o, &files))
        snprintf(ret, size, "no space is left in %s, where its output goes", o->run_dir);
}

/* When the file of this worker was written; INT64_MAX: there is none. */
static int64_t error_written_ns(const struct output *o, int local_rank) {
    struct output_files files;
    struct stat st;
    output_files(o, local_rank, &files);
    if (!files.error_json[0] || stat(files.error_json, &st) < 0 || st.st_size == 0)
        return INT64_MAX;
    return st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
}

int output_failed_before(const struct output *o, int local_rank, int n) {
    int64_t first_ns = error_written_ns(o, local_rank);
    int first = -1;
    for (int i = 0; i < n; i++) {
        int64_t ns = i == local_rank ? INT64_MAX : error_written_ns(o, i);
        if (ns < first_ns) {
            first_ns = ns;
            first = i;
        }
    }
    return first;
}

void output_fini(struct output *o) {
    if (o->scratch && o->run_dir[0])
        file_remove_tree(o->run_dir, NULL);
    o->run_dir[0] = '\0';
}
