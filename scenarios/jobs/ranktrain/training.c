#include "scenarios/jobs/ranktrain/training.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void training_write(const struct training *t, struct json_writer *w) {
    json_put_string(w, "mode", t->mode);
    json_put_string(w, "dataset", t->dataset);
    json_put_i64(w, "images", t->images);
    json_put_i64(w, "images_sum", t->sum);
    json_put_i64(w, "batch_size", t->batch_size);
    json_put_i64(w, "shards", t->shards);
    json_put_bool(w, "drop_last", t->drop_last);
    json_put_double(w, "lr", t->lr);
    json_put_double(w, "momentum", t->momentum);
    json_put_i64(w, "scale_lr", t->scale_lr);
    json_put_string(w, "computes", t->computes);
}

void training_read(const struct json *object, struct training *ret) {
    *ret = (struct training){.images = json_get_i64(object, "images", 0),
                             .sum = json_get_i64(object, "images_sum", 0),
                             .batch_size = json_get_i64(object, "batch_size", 0),
                             .shards = json_get_i64(object, "shards", 0),
                             .drop_last = json_get_bool(object, "drop_last", false),
                             .lr = json_number(json_get(object, "lr"), 0),
                             .momentum = json_number(json_get(object, "momentum"), 0),
                             .scale_lr = json_get_i64(object, "scale_lr", 0)};
    snprintf(ret->dataset, sizeof(ret->dataset), "%s", json_get_string(object, "dataset", ""));
    snprintf(ret->mode, sizeof(ret->mode), "%s", json_get_string(object, "mode", ""));
    snprintf(ret->computes, sizeof(ret->computes), "%s", json_get_string(object, "computes", ""));
}

static int differs(struct err *err, const char *option, int64_t saved, int64_t own) {
    return err_say(err, -EXDEV,
                   "it was trained with --%s=%lld, not %lld: use another --checkpoint-dir", option,
                   (long long)saved, (long long)own);
}

int training_check(const struct training *own, const struct training *saved, struct err *err) {
    if (!*own->dataset || !*saved->dataset)
        return 0;
    if (strcmp(own->dataset, saved->dataset) != 0)
        return err_say(err, -EXDEV,
                       "it was trained on --dataset=%s, not %s: use another --checkpoint-dir",
                       saved->dataset, own->dataset);
    if (own->images != saved->images)
        return err_say(err, -EXDEV,
                       "it was trained on %lld images, not %lld (--samples, --data-dir): use "
                       "another --checkpoint-dir",
                       (long long)saved->images, (long long)own->images);
    if (own->sum != saved->sum)
        return err_say(err, -EXDEV,
                       "it was trained on other images of --dataset=%s (sum %08llx, not %08llx): "
                       "use the --data-dir that it had, or another --checkpoint-dir",
                       own->dataset, (unsigned long long)saved->sum, (unsigned long long)own->sum);
    if (own->batch_size != saved->batch_size)
        return differs(err, "batch-size", saved->batch_size, own->batch_size);
    if (own->shards != saved->shards)
        return differs(err, "shards", saved->shards, own->shards);
    if (own->drop_last != saved->drop_last)
        return err_say(err, -EXDEV, "it was trained %s --drop-last: use another --checkpoint-dir",
                       saved->drop_last ? "with" : "without");
    return 0;
}

/* Adds what has changed. */
__attribute__((format(printf, 2, 3))) static void note(char ret[TRAINING_TEXT], const char *format,
                                                       ...) {
    size_t n = strlen(ret);
    va_list ap;
    n += (size_t)snprintf(ret + n, TRAINING_TEXT - n, "%s", n ? ", " : "");
    va_start(ap, format);
    if (n < TRAINING_TEXT)
        vsnprintf(ret + n, TRAINING_TEXT - n, format, ap);
    va_end(ap);
}

void training_changes(const struct training *own, const struct training *saved,
                      char ret[TRAINING_TEXT]) {
    static const char async[] = "ps-async";
    *ret = '\0';
    if (!*own->dataset || !*saved->dataset)
        return;
    if (own->lr != saved->lr)
        note(ret, "--lr=%.9g and not %.9g", own->lr, saved->lr);
    if (own->momentum != saved->momentum)
        note(ret, "--momentum=%.9g and not %.9g", own->momentum, saved->momentum);
    if (own->scale_lr != saved->scale_lr)
        note(ret, "--scale-lr=%lld and not %lld", (long long)own->scale_lr,
             (long long)saved->scale_lr);
    if ((strcmp(own->mode, async) == 0) != (strcmp(saved->mode, async) == 0))
        note(ret, "--mode=%s and not %s", own->mode, saved->mode);
    if (strcmp(own->computes, saved->computes) != 0)
        note(ret, "%.100s and not %.100s", own->computes, saved->computes);
}
