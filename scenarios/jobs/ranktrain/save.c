#include "scenarios/jobs/ranktrain/save.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the ranks tell one another of a save in parts, as numbers that can be summed: each has a row
 * of its own, and what the others add to it is nothing. */
enum {
    SUM_WORDS = 4,
    STATUS = 0,
    TENSORS = 1,
    TENSOR_WORDS = 2 + SUM_WORDS,
    ROW = TENSORS + MANIFEST_TENSORS * TENSOR_WORDS
};
enum part_status { DONE = 1, BUSY = 2, FAILED = 3 };

_Static_assert((int)MANIFEST_PARTS >= (int)SHARDS_MAX, "every rank may have a part");

static bool in_parts(const struct trainer *t) {
    return t->o->checkpoint_sharded;
}

bool save_has_all(const struct trainer *t) {
    return state_is_whole(&t->state) && (trainer_leads(t) || !t->mode->serves);
}

/* The ranks that save in this rank's directory; *ret_part: which of them this one is. */
static int sharers(const struct trainer *t, int ret_ranks[BOOTSTRAP_MEMBERS], int *ret_part) {
    const int *keeper = t->resume.places.keeper, own = keeper[t->o->rank];
    int n = 0;
    for (int rank = 0; rank < t->o->world; rank++)
        if (keeper[rank] == own) {
            if (rank == t->o->rank)
                *ret_part = n;
            ret_ranks[n++] = rank;
        }
    return n;
}

/* A server is alone at its step where it waits for nobody, and has all where it keeps the directory
 * that all share. */
static bool must_gather(const struct trainer *t) {
    const struct checkpoint_places *places = &t->resume.places;
    if (t->mode->serves)
        return !t->o->ps_async && (places->n > 1 || places->keeper[0] != 0);
    return t->mode->gather;
}

int save_open(struct trainer *t, struct err *err) {
    if (!t->o->checkpoint_dir)
        return 0;
    t->parts_pending = t->leaves = false;
    bool writes = t->resume.keeps || in_parts(t);
    if (!t->o->checkpoint_async || !writes || t->writer)
        return 0;
    return writer_new(&t->writer, &t->place, &t->q, err);
}

/* ---- in parts ---- */

static void words_of(const char hex[65], int64_t ret[SUM_WORDS]) {
    for (int i = 0; i < SUM_WORDS; i++) {
        char digits[17];
        snprintf(digits, sizeof(digits), "%.16s", hex + (size_t)i * 16);
        ret[i] = (int64_t)strtoull(digits, NULL, 16);
    }
}

static void hex_of(const int64_t words[SUM_WORDS], char ret[65]) {
    for (int i = 0; i < SUM_WORDS; i++)
        snprintf(ret + (size_t)i * 16, 17, "%016llx", (unsigned long long)words[i]);
}

static void put_row(int64_t *row, enum part_status status, const struct checkpoint_part *part,
                    int moments) {
    row[STATUS] = status;
    for (int i = 0; status == DONE && part && i <= moments; i++) {
        int64_t *at = row + TENSORS + (ptrdiff_t)i * TENSOR_WORDS;
        at[0] = part->first[i];
        at[1] = part->bytes[i];
        words_of(part->sha256[i], at + 2);
    }
}

static void take_row(const int64_t *row, int moments, struct checkpoint_part *ret) {
    for (int i = 0; i <= moments; i++) {
        const int64_t *at = row + TENSORS + (ptrdiff_t)i * TENSOR_WORDS;
        ret->first[i] = at[0];
        ret->bytes[i] = at[1];
        hex_of(at + 2, ret->sha256[i]);
    }
}

/* Every rank says how far it is and hears how far all are. Returns DONE when all are, BUSY, or an
 * error: its own (r, err), or that of a peer, who has told it. */
static int agree(struct trainer *t, int r, enum part_status own, const struct checkpoint_part *part,
                 int64_t *ret_rows, struct err *err) {
    size_t n = (size_t)t->o->world * ROW;
    int all = DONE;
    memset(ret_rows, 0, n * sizeof(*ret_rows));
    put_row(ret_rows + (ptrdiff_t)t->o->rank * ROW, r < 0 ? FAILED : own, part, t->state.moments);
    struct err lost;
    int sent = trainer_sum(t, ret_rows, n, r < 0 ? &lost : err);
    if (r < 0 || sent < 0)
        return r < 0 ? r : sent;
    pthread_mutex_lock(&t->speaking); /* that all have waited for all is not seen otherwise */
    rankquake_event_named(&t->q, "barrier", "%s", "");
    pthread_mutex_unlock(&t->speaking);
    for (int rank = 0; rank < t->o->world; rank++) {
        int64_t status = ret_rows[(ptrdiff_t)rank * ROW + STATUS];
        if (status == FAILED)
            return err_say(err, -EIO,
                           "rank %d could not save its part of a checkpoint, and says why", rank);
        if (status == BUSY)
            all = BUSY;
    }
    return all;
}

static int complete(struct trainer *t, const struct state *s, const int64_t *rows,
                    struct err *err) {
    struct checkpoint_part written[BOOTSTRAP_MEMBERS];
    int ranks[BOOTSTRAP_MEMBERS], part = 0, parts = sharers(t, ranks, &part);
    t->parts_pending = false;
    if (!t->resume.keeps)
        return 0;
    for (int i = 0; i < parts; i++)
        take_row(rows + (ptrdiff_t)ranks[i] * ROW, t->state.moments, &written[i]);
    return checkpoint_parts_commit(&t->place, s, parts, written, &t->q, err);
}

/* How far the parts are that are being written beside the training; wait: until all are. */
static int settle_parts(struct trainer *t, bool wait, struct err *err) {
    int64_t *rows = mem_array(int64_t, (size_t)t->o->world * ROW);
    int r = wait ? writer_wait(t->writer, err) : writer_poll(t->writer, err);
    enum part_status own = wait || r > 0 ? DONE : BUSY;
    r = agree(t, r < 0 ? r : 0, own, writer_part(t->writer), rows, err);
    if (r == DONE)
        r = complete(t, writer_state(t->writer), rows, err);
    free(rows);
    return r < 0 ? r : 0;
}

/* What this rank writes, of the state or of ret_slice. In one directory every rank writes what it
 * holds; where there are more each has all, and its ranks get their shares of what the others hold. */
static int take_slice(struct trainer *t, int part, int parts, struct state *ret_slice,
                      const struct state **ret, struct err *err) {
    *ret = &t->state;
    if (!must_gather(t) || t->resume.places.n == 1)
        return 0;
    checkpoint_slice_init(&t->place, part, parts, ret_slice);
    *ret = ret_slice;
    return t->mode->gather(t, ret_slice, err);
}

/* When all have begun. */
static int write_part(struct trainer *t, int part, int parts, int64_t *rows, struct err *err) {
    struct checkpoint_part own = {0};
    struct state slice = {0};
    const struct state *s;
    int r = take_slice(t, part, parts, &slice, &s, err);
    if (r == 0 && t->writer) {
        writer_save_part(t->writer, s, part, parts);
        t->parts_pending = true;
    } else if (r == 0) {
        r = checkpoint_part_write(&t->place, s, part, parts, &own, err);
        r = agree(t, r, DONE, &own, rows, err);
        if (r == DONE)
            r = complete(t, s, rows, err);
    }
    state_fini(&slice);
    return r;
}

static int save_parts(struct trainer *t, struct err *err) {
    int ranks[BOOTSTRAP_MEMBERS], part = 0, parts = sharers(t, ranks, &part);
    int64_t *rows = mem_array(int64_t, (size_t)t->o->world * ROW);
    int r =
        t->resume.keeps ? checkpoint_parts_begin(&t->place, t->state.step, parts, &t->q, err) : 0;
    r = agree(t, r, DONE, NULL, rows, err);
    if (r == DONE)
        r = write_part(t, part, parts, rows, err);
    free(rows);
    return r < 0 ? r : 0;
}

/* ---- all of it ---- */

static int save_state(struct trainer *t, const struct state *s, struct err *err) {
    if (!t->resume.keeps)
        return 0;
    if (!t->writer)
        return checkpoint_save(&t->place, s, &t->q, err);
    writer_save(t->writer, s);
    return 0;
}

/* Where the state is in parts who keeps a directory makes a whole of them, and every rank takes part. */
static int save_whole(struct trainer *t, struct err *err) {
    struct state whole = {0};
    if (!must_gather(t))
        return save_has_all(t) ? save_state(t, &t->state, err) : 0;
    if (t->resume.keeps)
        state_init(&whole, t->model, t->optimizer.kind);
    int r = t->mode->gather(t, t->resume.keeps ? &whole : NULL, err);
    if (r == 0)
        r = save_state(t, &whole, err);
    state_fini(&whole);
    return r;
}

/* What is being saved; wait: until it is durable. */
static int settle(struct trainer *t, bool wait, struct err *err) {
    if (!t->writer)
        return 0;
    if (t->parts_pending)
        return settle_parts(t, wait, err);
    int r = wait ? writer_wait(t->writer, err) : writer_poll(t->writer, err);
    return r < 0 ? r : 0;
}

int save_step(struct trainer *t, struct err *err) {
    bool end = t->leaves || t->ends || t->state.step == t->last_step;
    bool due = (end || t->state.step % t->save_every == 0) && t->saved_step != t->state.step;
    if (!t->o->checkpoint_dir)
        return 0;
    int r = settle(t, due || end, err);
    if (r == 0 && due) {
        t->durable_step = t->saved_step;
        t->saved_step = t->state.step;
        r = in_parts(t) ? save_parts(t, err) : save_whole(t, err);
    }
    if (r == 0 && end)
        r = settle(t, true, err);
    if (r == 0 && (end || !t->writer))
        t->durable_step = t->saved_step;
    return r;
}

int save_copy(struct trainer *t, const struct state *s, struct err *err) {
    int r = settle(t, true, err);
    return r == 0 ? save_state(t, s, err) : r;
}

int save_last(struct trainer *t, struct err *err) {
    if (!t->o->checkpoint_dir || !t->resume.keeps)
        return 0;
    int r = t->writer ? writer_wait(t->writer, err) : 0;
    bool incomplete = t->parts_pending, there = t->saved_step == t->state.step && !incomplete;
    if (r < 0 || there || !save_has_all(t))
        return r;
    t->saved_step = t->state.step;
    return checkpoint_save(&t->place, &t->state, &t->q, err);
}

void save_close(struct trainer *t) {
    t->writer = writer_free(t->writer);
}
