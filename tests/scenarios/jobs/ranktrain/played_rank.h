/* played_rank: one rank of a world whose peers, whose computation and whose harness are played (tests/played.h). Each call
 * is a line of what it was asked, with a sum of the numbers that it was given; what it brings is drawn. */
#pragma once

#include "tests/played.h"
#include "tests/scenarios/jobs/ranktrain/heard.h"

#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <fcntl.h>
#include <sys/eventfd.h>

enum {
    RANK_LAYERS = 4,
    RANK_BATCH = 2,
    RANK_IMAGES = 21,
    RANK_TRAINED = 15,
    RANK_VALUES = 18,
    RANK_COMPUTES = 8 /* at most; a rank's own is the first */
};
static const int64_t rank_one = INT64_C(1) << 32; /* of fixed point */

struct rank_compute {
    int number;
    bool open;
    struct buf said; /* of one that may be in another thread, until the step is over */
};

static struct {
    struct ranktrain_options o;
    struct trainer t;
    struct err err;
    struct rank_compute computes[RANK_COMPUTES];
    int computes_n, fails_n, fails_code; /* which computation fails beside others, and how */
    bool beside;                         /* others are under way while one computes */
    bool is_open;                        /* the collective */
    int64_t begun_ns;                    /* before what is asked about */
    struct collective_call *call;
    int waits, turn; /* waits: before the call is done */
    int events;
    uintptr_t weights_at;
    struct rankquake_page page;
    void (*deliver)(struct collective_call *call); /* NULL: what is drawn */
    size_t (*head)(
        const struct collective_call *call); /* NULL, or says what is in front, of so many bytes */
} scene;

static struct model_layer rank_layers[RANK_LAYERS] = {
    {.trained = 5, .running = 2, .trained_at = 0, .running_at = 15},
    {.trained = 0, .running = 0, .trained_at = 5, .running_at = 17},
    {.trained = 7, .running = 1, .trained_at = 5, .running_at = 17},
    {.trained = 3, .running = 0, .trained_at = 12, .running_at = 18},
};
static struct model rank_model = {.name = "played",
                                  .width = 3,
                                  .data = {.channels = 1,
                                           .side = 1,
                                           .classes = 4,
                                           .batch = RANK_BATCH,
                                           .mean = {0.5f},
                                           .deviation = {0.25f}},
                                  .layers = rank_layers,
                                  .n = RANK_LAYERS,
                                  .trained = RANK_TRAINED,
                                  .values = RANK_VALUES};
static uint8_t rank_pixels[RANK_IMAGES], rank_labels[RANK_IMAGES];

static inline unsigned sum_of(const void *data, size_t n) {
    const unsigned char *p = data;
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * UINT32_C(16777619);
    return sum;
}

/* ---- what computes ---- */

static inline struct buf *rank_words(struct rank_compute *c) {
    return scene.beside ? &c->said : &played.said;
}

/* Whether a computation fails, and by which number. */
static inline int rank_compute_fails(struct rank_compute *c, struct err *err) {
    int code = scene.beside        ? (c->number == scene.fails_n ? scene.fails_code : 0)
               : fails("  so far") ? -played.code
                                   : 0;
    if (code && code != -ECANCELED && code != -ERANGE)
        err_say(err, code, "computation %d broke", c->number);
    return code;
}

static inline int rank_compute_open(const struct compute_place *at, void **ret,
                                    char ret_label[COMPUTE_LABEL], struct err *err) {
    if (fails("compute: open for %d batches%s, local rank %d, wake %d, limit %lld", at->batches,
              at->layered ? ", layered" : "", at->local_rank, at->wake_fd == scene.t.asked.end_fd,
              (long long)at->limit_ns))
        return err_say(err, -played.code, "no computation");
    struct rank_compute *c = &scene.computes[scene.computes_n];
    *c = (struct rank_compute){.number = scene.computes_n++, .open = true};
    strcpy(ret_label, "played");
    *ret = c;
    return 0;
}

static inline int rank_compute_close(void *compute, struct err *err) {
    struct rank_compute *c = compute;
    (void)err;
    note("compute: close %d", c ? c->number : -1);
    if (c) {
        assert_true(c->open);
        c->open = false;
        buf_fini(&c->said);
    }
    return 0;
}

static inline void rank_compute_memory(void *compute, struct compute_memory *ret) {
    struct rank_compute *c = compute;
    assert_true(c->open);
    *ret = (struct compute_memory){1000 + 300 * (size_t)c->number, 200, 30};
}

static inline void rank_batch(struct buf *out, const struct compute_batch *b) {
    buf_printf(out, "  shard %d:", b->shard);
    for (int i = 0; i < RANK_BATCH; i++)
        buf_printf(out, " %d=%d", (int)(b->images[i] - rank_pixels), b->labels[i]);
    buf_putc(out, '\n');
}

/* The numbers of a shard: small whole ones, so that no rounding can be another one. */
static inline int64_t rank_number(int shard, size_t i) {
    return ((int64_t)((size_t)(shard + 3) * (i + 5) * 7 % 33) - 16) * rank_one;
}

static inline int rank_sum(void *compute, const float *values, const struct compute_batch *batches,
                           int n, const struct pass_watch *watch, int64_t *ret_sums,
                           struct compute_wrong *ret_wrong, struct err *err) {
    struct rank_compute *c = compute;
    struct buf *out = rank_words(c);
    buf_printf(out, "compute %d: sum of %d by %08x%s\n", c->number, n,
               sum_of(values, RANK_VALUES * sizeof(*values)), watch ? ", watched" : "");
    for (int i = 0; i < n; i++)
        rank_batch(out, &batches[i]);
    int r = rank_compute_fails(c, err);
    *ret_wrong = (struct compute_wrong){.shard = n ? batches[n - 1].shard : 0, .where = "layer 2"};
    for (size_t i = 0; i <= RANK_VALUES; i++) {
        ret_sums[i] = 0;
        for (int k = 0; k < n; k++)
            ret_sums[i] += rank_number(batches[k].shard, i);
    }
    for (int i = RANK_LAYERS - 1; watch && r == 0 && i >= 0; i--)
        watch->layer(watch->arg, i);
    return r;
}

static inline double rank_gradient(void *compute, const float *values, const uint8_t *const *images,
                                   const uint8_t *labels, float *ret,
                                   const struct pass_watch *watch) {
    struct rank_compute *c = compute;
    buf_printf(rank_words(c), "compute %d: gradient by %08x of %d %d, %d %d\n", c->number,
               sum_of(values, RANK_VALUES * sizeof(*values)), (int)(images[0] - rank_pixels),
               (int)(images[1] - rank_pixels), labels[0], labels[1]);
    for (size_t i = 0; i < RANK_VALUES; i++)
        ret[i] = (float)(rank_number(*images[0], i) / rank_one);
    for (int i = RANK_LAYERS - 1; watch && i >= 0; i--)
        watch->layer(watch->arg, i);
    return *images[1] % 4;
}

static inline void rank_blame(const void *compute, const float *gradient, char ret[COMPUTE_LABEL]) {
    (void)compute;
    (void)gradient;
    strcpy(ret, "nothing");
}

static inline int rank_begin(void *compute, const struct compute_batch *batches, int n,
                             bool learning, struct err *err) {
    note("compute: begin %d%s", n, learning ? ", learning" : "");
    for (int i = 0; i < n; i++)
        if (learning)
            rank_batch(&played.said, &batches[i]);
        else
            note("  of %d %d", (int)(batches[i].images[0] - rank_pixels),
                 (int)(batches[i].images[1] - rank_pixels));
    return rank_compute_fails(compute, err);
}

static inline int rank_forward(void *compute, int layer, const float *values, int64_t *sums,
                               struct compute_wrong *ret_wrong, struct err *err) {
    const struct model_layer *l = &rank_layers[layer];
    size_t n = l->trained + (sums ? 0 : l->running);
    note("compute: forward %d by %08x%s", layer, sum_of(values, n * sizeof(*values)),
         sums ? ", learning" : "");
    for (size_t i = 0; sums && i < l->running; i++)
        sums[i] += rank_number(layer, i);
    *ret_wrong = (struct compute_wrong){layer, "what comes forward"};
    return rank_compute_fails(compute, err);
}

static inline int rank_loss(void *compute, int64_t *sum, struct compute_wrong *ret_wrong,
                            struct err *err) {
    note("compute: loss");
    *sum += 6 * rank_one;
    *ret_wrong = (struct compute_wrong){9, "the loss"};
    return rank_compute_fails(compute, err);
}

static inline int rank_backward(void *compute, int layer, const float *values, int64_t *ret_sums,
                                struct compute_wrong *ret_wrong, struct err *err) {
    const struct model_layer *l = &rank_layers[layer];
    note("compute: backward %d by %08x", layer, sum_of(values, l->trained * sizeof(*values)));
    for (size_t i = 0; i < l->trained; i++)
        ret_sums[i] = rank_number(layer, i);
    *ret_wrong = (struct compute_wrong){layer, "what comes back"};
    return rank_compute_fails(compute, err);
}

static inline int rank_classes(void *compute, uint8_t *ret_classes, struct err *err) {
    note("compute: classes");
    for (int i = 0; i < RANK_BATCH; i++)
        ret_classes[i] = (uint8_t)(i + 1);
    return rank_compute_fails(compute, err);
}

static inline int rank_classify(void *compute, const float *values, const uint8_t *const *images,
                                uint8_t *ret_classes, struct err *err) {
    note("compute: classify %d %d by %08x", (int)(images[0] - rank_pixels),
         (int)(images[1] - rank_pixels), sum_of(values, RANK_VALUES * sizeof(*values)));
    for (int i = 0; i < RANK_BATCH; i++)
        ret_classes[i] = *images[i] % 4;
    return rank_compute_fails(compute, err);
}

static const struct compute_layers rank_compute_layers = {rank_begin, rank_forward, rank_loss,
                                                          rank_backward, rank_classes};

/* All at once, or one batch after another. */
static const struct compute rank_compute_sum = {.name = "played",
                                                .open = rank_compute_open,
                                                .layers = &rank_compute_layers,
                                                .memory = rank_compute_memory,
                                                .sum = rank_sum,
                                                .classify = rank_classify,
                                                .close = rank_compute_close};
static const struct compute rank_compute_one = {.name = "played",
                                                .open = rank_compute_open,
                                                .gradient = rank_gradient,
                                                .blame = rank_blame,
                                                .layers = &rank_compute_layers,
                                                .memory = rank_compute_memory,
                                                .classify = rank_classify,
                                                .close = rank_compute_close};

/* ---- the peers ---- */

/* Numbers as peers may have them; small, so that none is rounded. */
static inline void rank_draw_floats(float *ret, size_t n) {
    int base = draw(64);
    for (size_t i = 0; i < n; i++)
        ret[i] = (float)((base + (int)i * 7) % 64 - 32) / 4;
}

static inline void rank_draw_sums(int64_t *ret, size_t n) {
    int base = draw(64);
    for (size_t i = 0; i < n; i++)
        ret[i] += ((base + (int)i * 5) % 64 - 32) * rank_one;
}

static const char *const rank_ops[] = {"all-reduce", "reduce-scatter", "all-gather",
                                       "broadcast",  "send",           "receive"};

static inline int rank_start(void *ring, struct collective_call *call, struct err *err) {
    const char *data = call->data;
    size_t from = 0, to = call->bytes;
    assert_true(ring == &scene && scene.is_open && !scene.call);
    assert_true(call->deadline_ns - scene.o.collective_ns >= scene.begun_ns &&
                call->deadline_ns - scene.o.collective_ns <= deadline_now_ns());
    if (call->op == COLLECTIVE_ALL_GATHER) {
        from = call->bounds[scene.o.rank];
        to = call->bounds[scene.o.rank + 1];
    }
    bool gives = call->op != COLLECTIVE_RECEIVE &&
                 (call->op != COLLECTIVE_BROADCAST || call->peer == scene.o.rank);
    buf_printf(&played.said, "%s %d: %zu bytes", rank_ops[call->op], call->peer, call->bytes);
    from += gives && scene.head ? scene.head(call) : 0;
    for (int i = 0; call->bounds && i <= scene.o.world; i++)
        buf_printf(&played.said, "%s%zu", i ? " " : " at ", call->bounds[i]);
    if (fails(" %08x", gives ? sum_of(data + from, to - from) : 0))
        return err_say(err, -played.code, "rank 9 at played: %s", strerror(played.code));
    scene.call = call;
    scene.waits = scene.turn++ % 3;
    return 0;
}

static inline void rank_bring(struct collective_call *call) {
    size_t n = call->bytes / 4;
    switch (call->op) {
    case COLLECTIVE_ALL_REDUCE:
        rank_draw_sums(call->data, call->bytes / 8);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        rank_draw_sums((void *)((char *)call->data + call->bounds[scene.o.rank]),
                       (call->bounds[scene.o.rank + 1] - call->bounds[scene.o.rank]) / 8);
        break;
    case COLLECTIVE_ALL_GATHER:
        for (int i = 0; i < scene.o.world; i++)
            if (i != scene.o.rank)
                rank_draw_floats((void *)((char *)call->data + call->bounds[i]),
                                 (call->bounds[i + 1] - call->bounds[i]) / 4);
        break;
    case COLLECTIVE_BROADCAST:
        if (call->peer != scene.o.rank)
            rank_draw_floats(call->data, n);
        break;
    case COLLECTIVE_RECEIVE:
        rank_draw_floats(call->data, n);
        break;
    case COLLECTIVE_SEND:
        break;
    }
}

static inline int rank_poll(void *ring, int timeout_ms, struct err *err) {
    struct collective_call *call = scene.call;
    assert_true(ring == &scene && call && timeout_ms == -1);
    if (scene.waits-- > 0)
        return 0;
    scene.call = NULL;
    if (call->peer == COLLECTIVE_ANY)
        call->peer = 1 + draw(scene.o.world - 1);
    if (fails("  done, by %d", call->peer)) {
        if (played.code != ECANCELED)
            err_say(err, -played.code, "rank %d at played: %s", call->peer, strerror(played.code));
        return -played.code;
    }
    if (scene.deliver)
        scene.deliver(call);
    else
        rank_bring(call);
    return 1;
}

static inline void rank_forget(void *ring, int who) {
    assert_ptr_equal(ring, &scene);
    note("forget %d", who);
}

static inline void rank_abort(void *ring) {
    assert_ptr_equal(ring, &scene);
    note("abort");
    scene.call = NULL;
}

static const struct collective rank_collective = {.name = "played",
                                                  .start = rank_start,
                                                  .poll = rank_poll,
                                                  .forget = rank_forget,
                                                  .abort = rank_abort};

/* ---- the harness ---- */

/* Where memory lies is chance: addresses are said from that of the weights on. */
static inline void rank_say_told(const char *text) {
    static const char word[] = "\"address\":";
    const char *at = strstr(text, word);
    char *end = NULL;
    if (!at) {
        note("told %s", text);
        return;
    }
    at += strlen(word);
    unsigned long long address = strtoull(at, &end, 10);
    note("told %.*s%llu%s", (int)(at - text), text, address - (unsigned long long)scene.weights_at,
         end);
}

/* What it has been told since it was asked last. */
static inline void rank_hear(void) {
    char text[RANKQUAKE_MESSAGE_MAX + 1];
    ssize_t n;
    while ((n = recv(scene.events, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
        text[n] = 0;
        rank_say_told(text);
    }
    for (int i = 0; i < scene.computes_n; i++)
        if (scene.computes[i].said.len) {
            buf_puts(&played.said, buf_str(&scene.computes[i].said));
            buf_clear(&scene.computes[i].said);
        }
}

static inline void rank_listen(void) {
    heard_begin();
}

static inline void rank_heard(void) {
    heard_end();
    rank_hear();
}

/* ---- the rank ---- */

/* As setup leaves it: with model, data, and what computes, but for the mode's own. */
static inline void rank_begin_as(const char *mode, int number, int world, int shards) {
    struct trainer *t = &scene.t;
    int pair[2];
    memset(&scene, 0, sizeof(scene));
    scene.fails_n = -1;
    scene.is_open = true;
    scene.begun_ns = deadline_now_ns();
    scene.o = (struct ranktrain_options){.rank = number,
                                         .world = world,
                                         .devices = 1,
                                         .recover = "restart",
                                         .shards = shards,
                                         .batch_size = shards * RANK_BATCH,
                                         .collective_ns = INT64_C(5000000000),
                                         .local_rank = 2,
                                         .device_ns = 77};
    for (int i = 0; i < RANK_IMAGES; i++) {
        rank_pixels[i] = (uint8_t)i;
        rank_labels[i] = (uint8_t)(i * 3 % 4);
    }
    t->o = &scene.o;
    t->mode = mode_find(mode, &scene.err);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    scene.events = pair[1];
    scene.page.version = RANKQUAKE_VERSION_OF_PAGE;
    t->q = (struct rankquake){.fd = pair[0], .pid = getpid(), .page = &scene.page};
    t->asked = ASKED_CLOSED;
    t->asked.told_fd = t->asked.end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->data.train = (struct images){.shape = {.channels = 1, .side = 1, .classes = 4},
                                    .count = RANK_IMAGES,
                                    .bytes = 1,
                                    .pixels = rank_pixels,
                                    .labels = rank_labels,
                                    .path = "images"};
    t->data.test = t->data.train;
    sampler_init(&t->sampler, 7, RANK_IMAGES, (uint32_t)scene.o.batch_size, 1, false);
    t->parts = 1;
    t->model = &rank_model;
    t->optimizer = (struct optimizer){
        .kind = optimizer_find(draw(3) ? "sgd" : "adam", &scene.err), .lr = 0.5f, .momentum = 0.5f};
    t->compute = draw(2) ? &rank_compute_sum : &rank_compute_one;
    t->collective = &rank_collective;
    t->ring = &scene;
    t->last_step = UINT64_MAX;
    t->save_every = 2;
    t->read = calloc((size_t)scene.o.batch_size, sizeof(*t->read));
    pthread_mutex_init(&t->speaking, NULL);
    int serves = t->mode->serves;
    if (number >= serves)
        t->n_shards = shards_of(number - serves, world - serves, shards, t->shards);
}

static inline void rank_set_page(bool weights, bool samples) {
    scene.page.kinds = (uint32_t)weights << RANKQUAKE_ASK_WEIGHTS | (uint32_t)samples
                                                                        << RANKQUAKE_ASK_SAMPLES;
}

static inline void rank_ask_to_end(void) {
    eventfd_write(scene.t.asked.told_fd, 1);
}

static inline void rank_say_state(const struct state *s) {
    buf_printf(&played.said, "  step %llu, %zu-%zu %08x", (unsigned long long)s->step, s->held.lo,
               s->held.hi, sum_of(s->weights, state_range_length(s->held) * sizeof(float)));
    for (int i = 0; i < s->moments; i++)
        buf_printf(&played.said, ", %zu-%zu %08x", s->held_moments.lo, s->held_moments.hi,
                   sum_of(s->moment[i], state_range_length(s->held_moments) * sizeof(float)));
    buf_putc(&played.said, '\n');
}

/* What became of a call. */
static inline void rank_say(const char *what, int r) {
    const struct trainer *t = &scene.t;
    note("%s: %d, %d \"%s\"%s%s%s%s", what, r, scene.err.code, scene.err.msg,
         t->ends ? ", ends" : "", t->broken_up ? ", broken up" : "", t->leaves ? ", leaves" : "",
         t->reduced ? ", reduced" : "");
    scene.err = (struct err){0};
}

static inline void rank_end(void) {
    struct trainer *t = &scene.t;
    rank_hear();
    close(scene.events);
    close(t->q.fd);
    close(t->asked.told_fd);
    sampler_fini(&t->sampler);
    pthread_mutex_destroy(&t->speaking);
    free(t->read);
}
