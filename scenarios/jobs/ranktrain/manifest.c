#include "scenarios/jobs/ranktrain/manifest.h"

#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char format[] = "ranktrain-checkpoint";

_Static_assert(MANIFEST_FILES >= 1 + OPTIMIZER_MOMENTS, "weights and every moment");

void manifest_name_files(struct manifest *m, const struct optimizer_kind *k) {
    m->n_files = 1 + optimizer_moments(k);
    snprintf(m->files[0].name, sizeof(m->files[0].name), "%s", MANIFEST_WEIGHTS);
    for (int i = 1; i < m->n_files; i++)
        snprintf(m->files[i].name, sizeof(m->files[i].name), "%s.f32", k->moments[i - 1]);
}

void manifest_write(const struct manifest *m, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "format", format);
    json_put_i64(&w, "version", MANIFEST_VERSION);
    json_put_i64(&w, "step", m->step);
    json_put_i64(&w, "round", m->round);
    json_put_string(&w, "run_id", m->run_id);
    json_put_i64(&w, "world_size", m->world_size);
    json_put_i64(&w, "seed", m->seed);
    json_put_string(&w, "network", m->network);
    json_put_i64(&w, "width", m->width);
    json_put_string(&w, "optimizer", m->optimizer);
    json_put_i64(&w, "parameters", m->parameters);
    json_put_string(&w, "model", m->model);
    json_array(&w, "files");
    for (int i = 0; i < m->n_files; i++) {
        json_object(&w, NULL);
        json_put_string(&w, "name", m->files[i].name);
        json_put_i64(&w, "bytes", m->files[i].bytes);
        json_put_string(&w, "sha256", m->files[i].sha256);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}

static int read_file(const struct json *files, struct manifest_file *f, struct err *err) {
    for (const struct json *it = json_first(files); it; it = it->next) {
        const char *sum = json_get_string(it, "sha256", "");
        if (strcmp(json_get_string(it, "name", ""), f->name) != 0)
            continue;
        if (strlen(sum) != 64)
            return err_say(err, -EBADMSG, "the sha256 of %s has not 64 digits", f->name);
        f->bytes = json_get_i64(it, "bytes", -1);
        snprintf(f->sha256, sizeof(f->sha256), "%s", sum);
        return 0;
    }
    return err_say(err, -EBADMSG, "%s is not listed", f->name);
}

/* Which files there must be depends on the optimizer. */
static int read_files(const struct json *j, struct manifest *m, struct err *err) {
    struct err unknown;
    const struct optimizer_kind *k = optimizer_find(m->optimizer, &unknown);
    if (!k)
        return err_say(err, -EBADMSG, "its optimizer, %s, is not known", m->optimizer);
    manifest_name_files(m, k);
    for (int i = 0; i < m->n_files; i++) {
        int r = read_file(json_get(j, "files"), &m->files[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_tree(const struct json *j, struct manifest *m, struct err *err) {
    if (strcmp(json_get_string(j, "format", ""), format) != 0)
        return err_say(err, -EBADMSG, "it has no \"format\": \"%s\"", format);
    if (json_get_i64(j, "version", 0) != MANIFEST_VERSION)
        return err_say(err, -EBADMSG, "version %lld is not known, only %d",
                       (long long)json_get_i64(j, "version", 0), MANIFEST_VERSION);
    m->step = json_get_i64(j, "step", -1);
    m->round = json_get_i64(j, "round", -1);
    m->world_size = json_get_i64(j, "world_size", -1);
    m->seed = json_get_i64(j, "seed", -1);
    m->parameters = json_get_i64(j, "parameters", -1);
    snprintf(m->run_id, sizeof(m->run_id), "%s", json_get_string(j, "run_id", ""));
    m->width = json_get_i64(j, "width", 6);
    snprintf(m->network, sizeof(m->network), "%s", json_get_string(j, "network", "lenet"));
    snprintf(m->optimizer, sizeof(m->optimizer), "%s", json_get_string(j, "optimizer", "sgd"));
    snprintf(m->model, sizeof(m->model), "%s", json_get_string(j, "model", ""));
    if (m->step < 0 || m->round < 0 || m->seed < 0 || m->parameters < 0)
        return err_say(err, -EBADMSG, "it lacks step, round, seed or parameters");
    return read_files(j, m, err);
}

int manifest_read(const char *text, size_t n, struct manifest *ret, struct err *err) {
    ARENA_FINI struct arena arena = {0};
    struct manifest m = {0};
    const struct json *j = json_parse(&arena, text, n, err);
    int r = j ? read_tree(j, &m, err) : -EBADMSG;
    if (r < 0)
        return r;
    *ret = m;
    return 0;
}
