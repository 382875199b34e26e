/* Settles where each worker's output goes: --redirects, --tee and --log-dir. */
#include "agent/options_given.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_streams(const char *name, const char *text, struct err *err) {
    return err_say(err, -EINVAL,
                   "--%s %s: must be 0 (none), 1 (stdout), 2 (stderr), 3 (both), or a map of local "
                   "ranks as 0:3,1:1",
                   name, text);
}

/* "3" for all workers, or "0:3,1:1"; who is not named has 0. */
static int read_streams(const char *name, const char *text, int workers, struct arena *a,
                        uint8_t **ret, struct err *err) {
    uint8_t *streams = arena_array(a, uint8_t, (size_t)workers);
    int64_t value, rank;
    size_t n;
    memset(streams, 0, (size_t)workers);
    *ret = streams;
    if (!text)
        return 0;
    if (str_to_i64(text, 0, 3, &value)) {
        memset(streams, (int)value, (size_t)workers);
        return 0;
    }
    char **parts = str_split(a, text, ',', &n);
    for (size_t i = 0; i < n; i++) {
        char *colon = strchr(parts[i], ':');
        if (!colon)
            return no_streams(name, text, err);
        *colon = '\0';
        if (!str_to_i64(parts[i], 0, WORKERS_MAX, &rank) || !str_to_i64(colon + 1, 0, 3, &value))
            return no_streams(name, text, err);
        if (rank < workers) /* torchrun too lets a map speak of workers that are not there */
            streams[rank] = (uint8_t)value;
    }
    return 0;
}

static int read_filter(const struct options_given *g, int workers, const bool **ret,
                       struct err *err) {
    const char *text = g->local_ranks_filter;
    size_t n;
    int64_t rank;
    *ret = NULL;
    if (!text || !text[0])
        return 0;
    bool *hidden = arena_array(g->arena, bool, (size_t)workers);
    memset(hidden, 1, (size_t)workers);
    char **parts = str_split(g->arena, text, ',', &n);
    for (size_t i = 0; i < n; i++) {
        if (!str_to_i64(parts[i], 0, WORKERS_MAX, &rank))
            return err_say(err, -EINVAL, "--local-ranks-filter %s: must be local ranks as 0,1",
                           text);
        if (rank < workers)
            hidden[rank] = false;
    }
    *ret = hidden;
    return 0;
}

/* "a,b"; two commas stand for one that belongs to the text. */
static const char *const *read_needles(const char *text, struct arena *a) {
    if (!text || !text[0])
        return NULL;
    size_t len = strlen(text), n = 0, k = 0;
    const char **needles = arena_array(a, const char *, len + 2);
    char *at = arena_strdup(a, text);
    needles[n++] = at;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ',' && text[i + 1] == ',') {
            at[k++] = text[i++];
        } else if (text[i] == ',') {
            at[k++] = '\0';
            needles[n++] = at + k;
        } else {
            at[k++] = text[i];
        }
    }
    at[k] = '\0';
    needles[n] = NULL;
    return needles;
}

/* Files come of --redirects and --tee; of --log-dir alone too: who names a folder wants them. */
static void settle_files(struct worker_output *w, const struct options_given *g, uint8_t *files,
                         const uint8_t *tee, int workers) {
    bool silent = !g->redirects && !g->tee && w->log_dir && !str_eq(w->log_dir, "/dev/null");
    for (int i = 0; i < workers; i++)
        files[i] |= silent ? STREAM_OUT | STREAM_ERR : tee[i];
    w->to_file = files;
    w->tee = tee;
}

int options_settle_output(struct options *o, struct options_given *g, struct err *err) {
    struct worker_output *w = &o->output;
    const char *prefix = getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    uint8_t *files, *tee;
    int n = o->workers_per_node;
    w->log_dir = g->log_dir && g->log_dir[0] ? g->log_dir : NULL;
    int code = read_streams("redirects", g->redirects, n, g->arena, &files, err);
    if (!code)
        code = read_streams("tee", g->tee, n, g->arena, &tee, err);
    if (!code)
        code = read_filter(g, n, &w->hidden, err);
    if (code)
        return code;
    settle_files(w, g, files, tee, n);
    w->prefix = g->log_line_prefix_template && g->log_line_prefix_template[0]
                    ? g->log_line_prefix_template
                : prefix && prefix[0] ? prefix
                                      : NULL;
    w->out_needles = read_needles(g->duplicate_stdout_filters, g->arena);
    w->err_needles = read_needles(g->duplicate_stderr_filters, g->arena);
    if (str_eq(w->log_dir, "/dev/null") && g->tee && !str_eq(g->tee, "0"))
        return err_say(err, -EINVAL,
                       "--tee %s shows what is in files, and --log-dir /dev/null "
                       "keeps none",
                       g->tee);
    return 0;
}
