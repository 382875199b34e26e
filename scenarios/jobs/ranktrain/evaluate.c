#include "scenarios/jobs/ranktrain/evaluate.h"
#include "scenarios/jobs/ranktrain/asked.h"
#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/follow.h"
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/model/blas.h"
#include "scenarios/jobs/ranktrain/model/loss.h"
#include "scenarios/jobs/ranktrain/model/networks.h"
#include "scenarios/jobs/ranktrain/model/pass.h"
#include "scenarios/jobs/ranktrain/setup.h"
#include "scenarios/jobs/ranktrain/state.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evaluator {
    const struct ranktrain_options *o;
    struct dataset data;
    struct blas blas;
    struct model *model; /* of the last checkpoint; NULL: none yet */
    const struct optimizer_kind *optimizer;
    struct pass *pass;
    struct follow *follow;
    struct lease lease;
    struct asked asked;
    int dir;
    int64_t read; /* the newest step that has been read; -1: none */
};

static bool names(int argc, char **argv, const char *option) {
    size_t n = strlen(option);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, n) == 0 && (argv[i][n] == '=' || !argv[i][n]))
            return true;
    return false;
}

int evaluate_parse(int argc, char **argv, struct ranktrain_options *ret, struct err *err) {
    struct ranktrain_options o;
    int r = options_parse(argc, argv, &o, err);
    if (r < 0)
        return r;
    bool paced = names(argc, argv, "--eval-freq") || names(argc, argv, "--eval_freq") ||
                 names(argc, argv, "--checkpoint-every");
    if (!paced)
        o.checkpoint_every = 1;
    if (!names(argc, argv, "--network") && !names(argc, argv, "--arch"))
        o.network = NULL;
    if (!o.help && !o.version && !o.checkpoint_dir)
        return err_say(err, -EINVAL, "evaluate needs --model-dir=DIR, where the checkpoints come");
    if (o.checkpoint_every < 0)
        return err_say(err, -EINVAL, "--eval-freq: evaluate counts steps, not epochs");
    *ret = o;
    return 0;
}

/* ---- one checkpoint ---- */

/* What a manifest says of its network is somebody else's word: no more is made of it than its files can fill. */
static struct model *make_model(const struct manifest *m, const struct model_data *data,
                                struct err *err) {
    if (m->width < 1 || m->width > MODEL_WIDTH) {
        err_say(err, -EBADMSG, MANIFEST_NAME ": its width is %lld, and can be 1 to %d",
                (long long)m->width, MODEL_WIDTH);
        return NULL;
    }
    struct model *model = model_new(m->network, (int)m->width, data, err);
    if (!model || m->parameters == (int64_t)model->values)
        return model;
    err_say(err, -EBADMSG, MANIFEST_NAME ": it has %lld parameters, and %s of width %d has %zu",
            (long long)m->parameters, model->name, model->width, model->values);
    return model_free(model);
}

/* Makes the network that a checkpoint is of, where the last one was of another. */
static int take_model(struct evaluator *e, const struct manifest *m, struct err *err) {
    int64_t batch = e->o->eval_batch_size;
    const struct model_data data = setup_model_data(
        &e->data.test.shape, (int)(batch < LAYER_BATCH_MAX ? batch : LAYER_BATCH_MAX));
    const struct architecture *asked = e->o->network ? network_find(e->o->network, err) : NULL;
    if (e->o->network && !asked)
        return -EXDEV;
    if (*m->training.dataset && strcmp(m->training.dataset, e->data.kind->name) != 0)
        return err_say(err, -EXDEV, "it was trained on --dataset=%s, and this tests on %s",
                       m->training.dataset, e->data.kind->name);
    if (asked && strcmp(asked->name, m->network) != 0)
        return err_say(err, -EXDEV, "it is of --network=%s, not of %s", m->network, asked->name);
    if (e->model && strcmp(e->model->name, m->network) == 0 && e->model->width == m->width)
        return 0;
    struct model *model = make_model(m, &data, err);
    if (!model)
        return err->code;
    e->pass = pass_free(e->pass);
    model_free(e->model);
    e->model = model;
    e->pass = pass_new(model, &e->blas);
    return 0;
}

/* Adds up over the test set; what fills up the last batch does not count. */
static int measure(struct evaluator *e, const struct state *s, double *ret_loss,
                   uint32_t *ret_right, struct err *err) {
    const struct images *d = &e->data.test;
    uint32_t batch = (uint32_t)e->model->data.batch;
    int classes = e->model->data.classes, last = e->model->n - 1;
    float slope[MODEL_CLASSES];
    for (uint32_t first = 0; first < d->count; first += batch) {
        const uint8_t *images[LAYER_BATCH_MAX];
        uint8_t found[LAYER_BATCH_MAX];
        for (uint32_t i = 0; i < batch; i++)
            if (!(images[i] = images_read(d, first + i < d->count ? first + i : first, err)))
                return err->code;
        if (asked_is(&e->asked))
            return -ECANCELED;
        pass_classify(e->pass, s->weights, images, found);
        for (uint32_t i = 0; i < batch && first + i < d->count; i++) {
            uint8_t label = images_label(d, first + i);
            *ret_right += found[i] == label;
            *ret_loss += loss_cross_entropy(pass_look(e->pass, last).out + (ptrdiff_t)i * classes,
                                            &label, 1, classes, slope);
        }
    }
    return 0;
}

static int evaluate_step(struct evaluator *e, int64_t step, struct err *err) {
    struct manifest m;
    struct state s;
    double loss = 0;
    uint32_t right = 0;
    int r = checkpoint_dir_manifest(e->dir, step, &m, err);
    if (r == 0)
        r = take_model(e, &m, err);
    if (r < 0)
        return r;
    const struct checkpoint_place place = {.dir = e->o->checkpoint_dir,
                                           .run_id = "",
                                           .model = e->model,
                                           .optimizer = optimizer_find(m.optimizer, err),
                                           .round = INT64_MAX,
                                           .seed = m.seed};
    state_init(&s, e->model, place.optimizer);
    r = checkpoint_load_step(&place, e->dir, step, &s, err);
    if (r == 0)
        r = measure(e, &s, &loss, &right, err);
    state_fini(&s);
    if (r == 0)
        printf("step %lld loss %.4f accuracy %.4f\n", (long long)step, loss / e->data.test.count,
               (double)right / e->data.test.count);
    return r;
}

/* ---- one after another ---- */

/* All that are there and have not been read, oldest first. What cannot be used is said, once. */
static int evaluate_new(struct evaluator *e, struct err *err) {
    int64_t *steps = NULL;
    int n = checkpoint_dir_steps(e->dir, &steps, err), r = n < 0 ? n : 0;
    for (int i = n - 1; i >= 0 && r == 0; i--) {
        struct err why = {0};
        if (steps[i] <= e->read || steps[i] % e->o->checkpoint_every != 0)
            continue;
        r = evaluate_step(e, steps[i], &why);
        if (r < 0 && r != -ECANCELED) {
            fprintf(stderr, "ranktrain evaluate: ignored step %lld of %s: %s\n",
                    (long long)steps[i], e->o->checkpoint_dir, why.msg);
            r = 0;
        }
        if (r == 0) {
            e->read = steps[i];
            r = lease_read(&e->lease, e->read, err);
        }
        lease_renew(&e->lease);
    }
    free(steps);
    return r;
}

static int follow_all(struct evaluator *e, struct err *err) {
    int r = 0;
    while (r == 0) {
        r = evaluate_new(e, err);
        if (r == 0 && e->o->steps && e->read >= e->o->steps)
            break;
        if (r == 0)
            r = follow_wait(e->follow, err);
        lease_renew(&e->lease);
    }
    return r == -ECANCELED ? 0 : r;
}

static int open_all(struct evaluator *e, struct err *err) {
    const struct ranktrain_options *o = e->o;
    const struct dataset_kind *k = dataset_find(o->dataset, err);
    int r = k ? asked_open(&e->asked, err) : -EINVAL;
    if (r == 0)
        r = dataset_open(k, o->data_dir, (int)o->image_size, DATASET_TEST, &e->data, err);
    if (r == 0)
        r = blas_open(&e->blas, err);
    if (r == 0)
        r = follow_new(&e->follow, o->checkpoint_dir, o->interval_ns,
                       INT64_C(1000000000) * LEASE_SECONDS / 3, e->asked.told_fd, err);
    if (r < 0)
        return r;
    e->dir = r = follow_open(e->follow, err);
    return r < 0 ? r : lease_take(&e->lease, e->dir, o->checkpoint_every, err);
}

int evaluate_run(const struct ranktrain_options *o, struct err *err) {
    struct evaluator e = {
        .o = o, .asked = ASKED_CLOSED, .dir = -1, .read = -1, .lease = {.fd = -1}};
    int r = open_all(&e, err);
    if (r == 0)
        r = follow_all(&e, err);
    lease_drop(&e.lease);
    e.follow = follow_free(e.follow);
    e.pass = pass_free(e.pass);
    model_free(e.model);
    blas_close(&e.blas);
    dataset_close(&e.data);
    file_close(&e.dir);
    asked_close(&e.asked);
    return r == -ECANCELED ? 0 : r;
}
