#include "harness/run/control_weights.h"

#include "base/mem.h"
#include "harness/run/control.h"
#include "harness/run/engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 1 << 22, /* from the first on; whoever makes more is compared up to there */
    STEPS_A_LINE = 100,
    FILE_BYTES_MAX = 256 << 20
};

static const char file_name[] = "weights.jsonl";

static bool tells(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "step") && *record_text(r, "weights");
}

/* The lowest and the highest step that was told with its weights; false: none was. */
static bool find_span(const struct history *h, int64_t *ret_first, int64_t *ret_last) {
    *ret_first = INT64_MAX;
    *ret_last = -1;
    history_each(r, h) {
        int64_t step = tells(r) ? record_i64(r, "step", -1) : -1;
        if (step < 0)
            continue;
        *ret_first = step < *ret_first ? step : *ret_first;
        *ret_last = step > *ret_last ? step : *ret_last;
    }
    if (*ret_last - *ret_first >= STEPS_MAX && *ret_last >= 0)
        *ret_last = *ret_first + STEPS_MAX - 1;
    return *ret_last >= 0;
}

static void put_line(struct buf *out, int64_t from, const char *const *weights, size_t n) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_i64(&w, "from", from);
    json_array(&w, "weights");
    for (size_t i = 0; i < n; i++)
        json_put_string(&w, NULL, weights[i] ? weights[i] : "");
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}

static void put_lines(struct buf *out, const struct history *h, int64_t first, int64_t last) {
    size_t n = (size_t)(last - first + 1);
    const char **weights = mem_array(const char *, n);
    memset(weights, 0, n * sizeof(*weights));
    history_each(r, h) {
        int64_t step = tells(r) ? record_i64(r, "step", -1) : -1;
        if (step >= first && step <= last)
            weights[step - first] = record_text(r, "weights");
    }
    for (size_t i = 0; i < n; i += STEPS_A_LINE)
        put_line(out, first + (int64_t)i, weights + i, n - i < STEPS_A_LINE ? n - i : STEPS_A_LINE);
    free(weights);
}

int control_weights_keep(const char *dir, const struct history *h, struct err *err) {
    char path[PATH_MAX];
    struct folder folder = FOLDER_NONE;
    const char *name = "";
    BUF_FINI struct buf text = {0};
    int64_t first, last;
    if (!find_span(h, &first, &last))
        return 0;
    put_lines(&text, h, first, last);
    if (snprintf(path, sizeof(path), "%s/%s", dir, file_name) >= (int)sizeof(path))
        return err_say(err, -ENAMETOOLONG, "the path of %s is too long", dir);
    int r = cache_enter(path, true, &folder, &name, err);
    if (r == 0)
        r = folder_write_synced(&folder, name, text.data, text.len, err);
    folder_close(&folder);
    return r;
}

static void record_line(struct engine *e, const char *text, size_t len) {
    ARENA_FINI struct arena a = {0};
    const struct json *line = json_parse(&a, text, len, NULL);
    const struct json *weights = json_get(line, "weights");
    if (!weights || weights->type != JSON_ARRAY)
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "control-weights");
    json_put_i64(w, "from", json_get_i64(line, "from", 0));
    json_put_tree(w, "weights", weights);
    engine_recorded(e);
}

void control_weights_record(struct engine *e, const char *dir) {
    char path[PATH_MAX];
    struct folder folder = FOLDER_NONE;
    const char *name = "";
    BUF_FINI struct buf text = {0};
    int n = snprintf(path, sizeof(path), "%s/%s", dir, file_name);
    if (!*dir || n >= (int)sizeof(path))
        return;
    if (cache_enter(path, false, &folder, &name, NULL) == 0 &&
        folder_read(&folder, name, FILE_BYTES_MAX, &text, NULL) == 0) {
        const char *at = buf_str(&text), *end;
        for (; (end = strchr(at, '\n')); at = end + 1)
            record_line(e, at, (size_t)(end - at));
    }
    folder_close(&folder);
}
