#include "reports/lanes.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/printing.h"
#include "reports/page.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_MAX = 64, LABEL = 16, LABEL_SHORT = 8, STEP = 12, FRAME_MIN = 6 };

struct lane_fault {
    const char *id, *fault;
    char on[80];
    const char *state; /* "fired", "struck", "in force", "over", "failed" */
    int64_t t_ns;
};

struct lanes {
    struct rounds rounds;
    struct live *live; /* says in words what happens, into `said` */
    FILE *into;
    char *said;
    size_t said_len;
    char *notes[LANES_NOTES]; /* the last of these, the newest last */
    size_t notes_n;
    FILE *printed; /* they go there, too; NULL: nowhere */
    const char *scenario;
    char state[80];
    int64_t seed, begin_ns, now_ns, last_step;
    struct lane_fault faults[FAULTS_MAX];
    size_t faults_n;
    bool begun, over;
};

struct lanes *lanes_new(bool strict) {
    struct lanes *l = mem_new(struct lanes);
    *l = (struct lanes){.scenario = ""};
    rounds_init(&l->rounds, strict);
    l->into = open_memstream(&l->said, &l->said_len);
    if (!l->into)
        abort(); /* out of memory */
    l->live = live_new(l->into, &(struct report_style){0}, "", 0);
    return l;
}

struct lanes *lanes_free(struct lanes *l) {
    if (!l)
        return NULL;
    live_end(l->live);
    fclose(l->into);
    free(l->said);
    for (size_t i = 0; i < l->notes_n; i++)
        free(l->notes[i]);
    rounds_fini(&l->rounds);
    free(l);
    return NULL;
}

void lanes_print_to(struct lanes *l, FILE *out) {
    l->printed = out;
}

void lanes_say_state(struct lanes *l, const char *state) {
    str_copy(l->state, sizeof(l->state), state);
}

bool lanes_over(const struct lanes *l) {
    return l->over;
}

/* ---- what happens ---- */

static void begin(struct lanes *l, const struct record *r) {
    l->begun = true;
    l->begin_ns = r->t_ns;
    l->scenario = record_text(r, "scenario");
    l->seed = record_i64(r, "seed", 0);
    if (json_get_bool(r->fields, "control", false))
        lanes_say_state(l, "control run");
}

static struct lane_fault *find_fault(struct lanes *l, const char *id) {
    for (size_t i = l->faults_n; i-- > 0;)
        if (str_eq(l->faults[i].id, id))
            return &l->faults[i];
    return NULL;
}

static void put_names(const struct json *list, char *ret, size_t size) {
    BUF_FINI struct buf text = {0};
    json_each(t, list) buf_printf(&text, "%s%s", text.len ? ", " : "", json_string(t, "?"));
    str_copy(ret, size, buf_str(&text));
}

static bool lasts(const struct record *r) {
    json_each(word,
              record_get(r, "effects")) if (str_eq(json_string(word, ""), "lasting")) return true;
    return false;
}

static void take_fault(struct lanes *l, const struct record *r) {
    struct lane_fault *f = find_fault(l, record_text(r, "id"));
    if (record_is(r, "fault-fired") && l->faults_n < FAULTS_MAX) {
        f = &l->faults[l->faults_n++];
        *f = (struct lane_fault){record_text(r, "id"), record_text(r, "fault"), "", "fired",
                                 r->t_ns};
        put_names(record_get(r, "on"), f->on, sizeof(f->on));
    }
    if (!f)
        return;
    if (record_is(r, "fault-in-force"))
        f->state = lasts(r) ? "in force" : "struck";
    else if (record_is(r, "fault-recovered"))
        f->state = "over";
    else if (record_is(r, "fault-failed"))
        f->state = "failed";
}

static void keep_note(struct lanes *l, const char *text) {
    if (l->notes_n == LANES_NOTES) {
        free(l->notes[0]);
        memmove(l->notes, l->notes + 1, (LANES_NOTES - 1) * sizeof(*l->notes));
        l->notes_n--;
    }
    l->notes[l->notes_n++] = mem_strdup(text);
}

/* In the words of the live view, the last few lines of them. */
static void take_words(struct lanes *l, const struct record *r) {
    fflush(l->into);
    size_t before = l->said_len;
    live_record(l->live, r);
    fflush(l->into);
    for (char *at = l->said + before, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        keep_note(l, at);
        if (l->printed)
            fprintf(l->printed, "%s\n", at);
    }
    if (l->said_len > 1 << 16)
        rewind(l->into);
}

void lanes_record(struct lanes *l, const struct record *r) {
    if (!l->begun)
        begin(l, r);
    l->now_ns = r->t_ns > l->now_ns ? r->t_ns : l->now_ns;
    rounds_feed(&l->rounds, r);
    take_words(l, r);
    if (r->source == SOURCE_HARNESS)
        take_fault(l, r);
    if (r->source == SOURCE_JOB && record_is(r, "step"))
        l->last_step =
            record_i64(r, "step", 0) > l->last_step ? record_i64(r, "step", 0) : l->last_step;
    if (record_is(r, "paused"))
        lanes_say_state(l, "stands still");
    if (record_is(r, "resumed"))
        lanes_say_state(l, "");
    if (record_is(r, "job-end"))
        lanes_say_state(l, record_text(r, "why"));
    l->over |= r->source == SOURCE_HARNESS && record_is(r, "health");
}

/* ---- what a lane shows ---- */

enum lane_cell { CELL_NONE, CELL_STARTS, CELL_TRAINS, CELL_ENDED, CELL_FAILED };
static const char *const cell_words[] = {"none", "starts", "trains", "ended", "failed"};

static int lanes_count(const struct lanes *l) {
    int most = 0;
    for (size_t i = 0; i < l->rounds.workers_n; i++)
        if (!l->rounds.workers[i]->hosts && l->rounds.workers[i]->rank >= most)
            most = l->rounds.workers[i]->rank + 1;
    return most < LANES_MAX ? most : LANES_MAX;
}

/* The newest worker of that rank that had started by then. */
static const struct worker *worker_at(const struct lanes *l, int rank, int64_t t_ns) {
    for (size_t i = l->rounds.workers_n; i-- > 0;) {
        const struct worker *w = l->rounds.workers[i];
        if (w->rank == rank && !w->hosts && w->start_ns <= t_ns)
            return w;
    }
    return NULL;
}

/* A launcher ends those by SIGTERM who have done nothing wrong. */
static bool has_failed(const struct worker *w) {
    return worker_failed(w) && w->exit_signal != SIGTERM;
}

/* Of a slice of time; an end is never skipped, however narrow the terminal is. */
static enum lane_cell cell_of(const struct worker *w, int64_t from_ns, int64_t to_ns) {
    if (!w)
        return CELL_NONE;
    if (w->exit_ns && w->exit_ns < to_ns) {
        bool now = w->exit_ns >= from_ns;
        return !now ? CELL_NONE : has_failed(w) ? CELL_FAILED : CELL_ENDED;
    }
    return w->first_step_ns && w->first_step_ns < to_ns ? CELL_TRAINS : CELL_STARTS;
}

static enum lane_cell slice(const struct lanes *l, int rank, int64_t from_ns, int64_t to_ns) {
    for (size_t i = l->rounds.workers_n; i-- > 0;) {
        const struct worker *w = l->rounds.workers[i];
        if (w->rank == rank && !w->hosts && w->exit_ns >= from_ns && w->exit_ns < to_ns &&
            has_failed(w))
            return CELL_FAILED;
    }
    return cell_of(worker_at(l, rank, to_ns - 1), from_ns, to_ns);
}

static void put_bar(const struct lanes *l, struct page *p, int rank, int cells) {
    static const char *const plain[] = {" ", ".", "=", "|", "x"};
    static const char *const pretty[] = {" ", "\u2591", "\u2588", "\u2502", "\u2717"};
    static const enum ink inks[] = {INK_PLAIN, INK_DIM, INK_GOOD, INK_PLAIN, INK_BAD};
    int64_t whole_ns = l->now_ns - l->begin_ns + 1;
    enum lane_cell cell = CELL_NONE;
    BUF_FINI struct buf same = {0};
    for (int c = 0; c <= cells; c++) {
        int64_t from = l->begin_ns + whole_ns * c / cells;
        int64_t to = l->begin_ns + whole_ns * (c + 1) / cells;
        enum lane_cell next = slice(l, rank, from, to > from ? to : from + 1);
        if (same.len && (next != cell || c == cells)) {
            page_put(p, inks[cell], buf_str(&same));
            buf_clear(&same);
        }
        cell = next;
        if (c < cells)
            buf_puts(&same, p->style.unicode ? pretty[cell] : plain[cell]);
    }
}

static void put_lane(const struct lanes *l, struct page *p, int rank) {
    const struct worker *w = worker_at(l, rank, l->now_ns);
    int width = p->style.width ? p->style.width : 80;
    int label_width = width < 50 ? LABEL_SHORT : LABEL, cells = width - label_width - STEP - 1;
    char label[48], step[32] = "";
    snprintf(label, sizeof(label), "rank %d", rank);
    if (w && width >= 50)
        snprintf(label, sizeof(label), "rank %-3d %.6s/%d", rank, w->node, w->local_rank);
    if (w && w->last_step >= 0)
        snprintf(step, sizeof(step), "step %lld", (long long)w->last_step);
    page_put(p, INK_PLAIN, label);
    page_tab(p, label_width);
    if (cells > 4)
        put_bar(l, p, rank, cells);
    page_put(p, INK_PLAIN, " ");
    page_put(p, INK_PLAIN, step);
    page_line(p);
}

static void put_title(const struct lanes *l, struct page *p) {
    const struct round *last = l->rounds.n ? l->rounds.v[l->rounds.n - 1] : NULL;
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%s, seed %lld  %.1f s", l->scenario, (long long)l->seed,
               (double)(l->now_ns - l->begin_ns) / 1e9);
    if (last)
        buf_printf(&text, "  round %d: %d of %d workers", last->number, last->started,
                   last->world_size);
    if (*l->state)
        buf_printf(&text, "  %s", l->state);
    page_cut(&text, p->style.width ? p->style.width : 1000);
    page_put(p, INK_STRONG, buf_str(&text));
    page_line(p);
}

static void put_fault(const struct lanes *l, struct page *p, const struct lane_fault *f) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%.3f s  %s: %s on %s, %s", (double)(f->t_ns - l->begin_ns) / 1e9, f->id,
               f->fault, f->on, f->state);
    page_cut(&text, p->style.width ? p->style.width : 1000);
    page_put(p, str_eq(f->state, "in force") ? INK_DOUBT : INK_DIM, buf_str(&text));
    page_line(p);
}

static void put_note(struct page *p, const char *note) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, note);
    page_cut(&text, p->style.width ? p->style.width : 1000);
    page_put(p, INK_DIM, buf_str(&text));
    page_line(p);
}

/* The title first, then lanes; faults and notes have what is left of the rows, and two lines each at
 * least where there are so many rows. */
void lanes_frame(const struct lanes *l, const struct report_style *style, int rows,
                 struct buf *out) {
    struct page p = {.out = out, .style = *style};
    int left = rows - 1, all = lanes_count(l), shown;
    if (rows < 1)
        return;
    put_title(l, &p);
    shown = all <= left - 4 ? all : left > FRAME_MIN ? left - 5 : left;
    shown = shown < all ? shown : all;
    for (int rank = 0; rank < shown; rank++)
        put_lane(l, &p, rank);
    left -= shown;
    if (shown < all && left > 0) {
        page_printf(&p, INK_DIM, "and %d more", all - shown);
        page_line(&p);
        left--;
    }
    size_t room = left > 1 ? (size_t)left / 2 : 0, faults = l->faults_n < room ? l->faults_n : room;
    for (size_t i = l->faults_n - faults; i < l->faults_n; i++)
        put_fault(l, &p, &l->faults[i]);
    room = left > 0 ? (size_t)left - faults : 0;
    size_t notes = l->notes_n < room ? l->notes_n : room;
    for (size_t i = l->notes_n - notes; i < l->notes_n; i++)
        put_note(&p, l->notes[i]);
}

/* ---- for a page ---- */

static void object_lane(const struct lanes *l, struct json_writer *w, int rank) {
    json_object(w, NULL);
    json_put_i64(w, "rank", rank);
    json_array(w, "lives");
    for (size_t i = 0; i < l->rounds.workers_n; i++) {
        const struct worker *k = l->rounds.workers[i];
        if (k->rank != rank || k->hosts)
            continue;
        enum lane_cell cell = cell_of(k, l->begin_ns, l->now_ns + 1);
        json_object(w, NULL);
        json_put_string(w, "on", k->node);
        json_put_i64(w, "local", k->local_rank);
        json_put_i64(w, "round", k->round);
        json_put_double(w, "from", (double)(k->start_ns - l->begin_ns) / 1e9);
        json_put_known(w, "trains_ms", k->first_step_ns,
                       (k->first_step_ns - l->begin_ns) / 1000000);
        json_put_known(w, "to_ms", k->exit_ns, (k->exit_ns - l->begin_ns) / 1000000);
        json_put_known(w, "step", k->last_step >= 0, k->last_step);
        json_put_string(w, "is", cell_words[cell]);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

void lanes_object(const struct lanes *l, struct buf *out) {
    struct json_writer w = {.out = out};
    int all = lanes_count(l);
    json_object(&w, NULL);
    json_put_string(&w, "scenario", l->scenario);
    json_put_i64(&w, "seed", l->seed);
    json_put_string(&w, "state", l->state);
    json_put_bool(&w, "over", l->over);
    json_put_double(&w, "now", (double)(l->now_ns - l->begin_ns) / 1e9);
    json_put_i64(&w, "step", l->last_step);
    json_array(&w, "lanes");
    for (int rank = 0; rank < all; rank++)
        object_lane(l, &w, rank);
    json_end_array(&w);
    json_array(&w, "faults");
    for (size_t i = 0; i < l->faults_n; i++) {
        const struct lane_fault *f = &l->faults[i];
        json_object(&w, NULL);
        json_put_string(&w, "id", f->id);
        json_put_string(&w, "fault", f->fault);
        json_put_string(&w, "on", f->on);
        json_put_string(&w, "state", f->state);
        json_put_double(&w, "at", (double)(f->t_ns - l->begin_ns) / 1e9);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_array(&w, "notes");
    for (size_t i = 0; i < l->notes_n; i++)
        json_put_string(&w, NULL, l->notes[i]);
    json_end_array(&w);
    json_end_object(&w);
}
