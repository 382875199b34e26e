#include "scenarios/jobs/ranktrain/manifest.h"

#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char format[] = "ranktrain-checkpoint";

_Static_assert((int)MANIFEST_TENSORS >= 1 + (int)OPTIMIZER_MOMENTS, "weights and every moment");

const char *manifest_tensor(const struct optimizer_kind *k, int tensor) {
    return tensor == 0 ? "weights" : k->moments[tensor - 1];
}

void manifest_name_files(struct manifest *m, const struct optimizer_kind *k, int parts) {
    int each = parts ? parts : 1, tensors = 1 + optimizer_moments(k);
    m->parts = parts;
    m->n_files = tensors * each;
    for (int i = 0; i < m->n_files; i++) {
        struct manifest_file *f = &m->files[i];
        f->tensor = i / each;
        const char *tensor = manifest_tensor(k, f->tensor);
        if (parts)
            snprintf(f->name, sizeof(f->name), "%.16s.%03d-of-%03d.f32", tensor, i % each, parts);
        else
            snprintf(f->name, sizeof(f->name), "%.16s.f32", tensor);
    }
}

void manifest_write(const struct manifest *m, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "format", format);
    bool told = *m->training.dataset;
    json_put_i64(&w, "version", told ? MANIFEST_VERSION : m->parts ? 2 : 1);
    json_put_i64(&w, "step", m->step);
    json_put_i64(&w, "round", m->round);
    json_put_string(&w, "run_id", m->run_id);
    json_put_i64(&w, "world_size", m->world_size);
    json_put_i64(&w, "seed", m->seed);
    json_put_string(&w, "network", m->network);
    json_put_i64(&w, "width", m->width);
    json_put_string(&w, "optimizer", m->optimizer);
    if (told) {
        training_write(&m->training, &w);
        json_put_i64(&w, "parts", m->parts);
    }
    json_put_i64(&w, "parameters", m->parameters);
    json_put_string(&w, "model", m->model);
    json_array(&w, "files");
    for (int i = 0; i < m->n_files; i++) {
        json_object(&w, NULL);
        json_put_string(&w, "name", m->files[i].name);
        if (m->parts) {
            json_put_stringn(&w, "tensor", m->files[i].name, strcspn(m->files[i].name, "."));
            json_put_i64(&w, "first", m->files[i].first);
        }
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
        f->first = json_get_i64(it, "first", 0);
        snprintf(f->sha256, sizeof(f->sha256), "%s", sum);
        return 0;
    }
    return err_say(err, -EBADMSG, "%s is not listed", f->name);
}

/* The parts of a tensor follow upon one another. */
static int check_order(const struct manifest *m, struct err *err) {
    int64_t next = 0;
    for (int i = 0; i < m->n_files; i++) {
        const struct manifest_file *f = &m->files[i];
        next = i && f->tensor == m->files[i - 1].tensor ? next : 0;
        if (f->first != next || f->bytes < 0 || f->bytes % (int64_t)sizeof(float))
            return err_say(err, -EBADMSG,
                           "%s begins at float %lld and has %lld bytes; %lld come "
                           "before it",
                           f->name, (long long)f->first, (long long)f->bytes, (long long)next);
        next += f->bytes / (int64_t)sizeof(float);
    }
    return 0;
}

/* Which files there must be depends on the optimizer, and how many parts on who wrote them. */
static int read_files(const struct json *j, struct manifest *m, struct err *err) {
    struct err unknown;
    const struct json *files = json_get(j, "files");
    const struct optimizer_kind *k = optimizer_find(m->optimizer, &unknown);
    if (!k)
        return err_say(err, -EBADMSG, "its optimizer, %s, is not known", m->optimizer);
    int tensors = 1 + optimizer_moments(k), n = files ? (int)files->length : 0;
    int64_t version = json_get_i64(j, "version", 0);
    bool parted = version > 2 ? json_get_i64(j, "parts", 0) > 0 : version == 2;
    if (parted && (n < tensors || n % tensors || n / tensors > MANIFEST_PARTS))
        return err_say(err, -EBADMSG,
                       "%d files are no equal number of parts, at most %d, of %d "
                       "tensors",
                       n, MANIFEST_PARTS, tensors);
    manifest_name_files(m, k, parted ? n / tensors : 0);
    for (int i = 0; i < m->n_files; i++) {
        int r = read_file(files, &m->files[i], err);
        if (r < 0)
            return r;
    }
    return parted ? check_order(m, err) : 0;
}

static int read_tree(const struct json *j, struct manifest *m, struct err *err) {
    if (strcmp(json_get_string(j, "format", ""), format) != 0)
        return err_say(err, -EBADMSG, "it has no \"format\": \"%s\"", format);
    int64_t version = json_get_i64(j, "version", 0);
    if (version < 1 || version > MANIFEST_VERSION)
        return err_say(err, -EBADMSG, "version %lld is not known, only 1 to %d%s",
                       (long long)version, MANIFEST_VERSION,
                       version > MANIFEST_VERSION ? ": a newer ranktrain has written it" : "");
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
    if (version > 2)
        training_read(j, &m->training);
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
