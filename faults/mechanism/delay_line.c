#include "faults/mechanism/delay_line.h"

#include "base/list.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct flight {
    struct list link;
    int64_t due_ns;
    struct delayed frame;
    unsigned char message[];
};

struct direction {
    size_t n;       /* in flight */
    int64_t due_ns; /* of the last */
};

struct delay_line {
    struct list flights; /* by when they are due */
    size_t bytes;
    struct direction directions[WIRE_PORTS_MAX][WIRE_PORTS_MAX];
    struct loop_source *on_due;
    delay_line_fn *fn;
    void *arg;
};

static void set_timer(struct delay_line *d) {
    if (!list_empty(&d->flights))
        loop_timer_at(d->on_due, list_entry(d->flights.next, struct flight, link)->due_ns);
}

static void land(struct delay_line *d, struct flight *f) {
    list_remove(&f->link);
    d->bytes -= f->frame.len;
    d->directions[f->frame.from][f->frame.to].n -= !f->frame.overtaken;
    d->fn(d->arg, &f->frame);
    free(f);
}

static void on_due(void *arg, int64_t now_ns) {
    struct delay_line *d = arg;
    while (!list_empty(&d->flights)) {
        struct flight *f = list_entry(d->flights.next, struct flight, link);
        if (f->due_ns > now_ns)
            break;
        land(d, f);
    }
    set_timer(d);
}

struct delay_line *delay_line_new(struct loop *l, delay_line_fn *fn, void *arg) {
    struct delay_line *d = mem_new(struct delay_line);
    list_init(&d->flights);
    d->fn = fn;
    d->arg = arg;
    d->on_due = loop_timer(l, on_due, d);
    return d;
}

struct delay_line *delay_line_free(struct delay_line *d) {
    if (!d)
        return NULL;
    list_each_safe(it, next, &d->flights) free(list_entry(it, struct flight, link));
    loop_source_free(d->on_due);
    free(d);
    return NULL;
}

bool delay_line_has(const struct delay_line *d, int from, int to) {
    return d->directions[from][to].n;
}

/* Most are due last of all, so the place is looked for from the end. */
static void insert(struct delay_line *d, struct flight *f) {
    struct list *after = d->flights.prev;
    while (after != &d->flights && list_entry(after, struct flight, link)->due_ns > f->due_ns)
        after = after->prev;
    list_append(after->next, &f->link);
}

bool delay_line_put(struct delay_line *d, const struct delayed *frame, int64_t due_ns) {
    struct direction *way = &d->directions[frame->from][frame->to];
    if (d->bytes + frame->len > DELAY_LINE_BYTES_MAX)
        return false;
    struct flight *f = mem_alloc(1, sizeof(*f) + frame->len);
    f->frame = *frame;
    f->frame.message = memcpy(f->message, frame->message, frame->len);
    f->due_ns = due_ns;
    if (!frame->overtaken) {
        f->due_ns = way->n && way->due_ns > due_ns ? way->due_ns : due_ns;
        way->due_ns = f->due_ns;
        way->n++;
    }
    d->bytes += frame->len;
    insert(d, f);
    if (d->flights.next == &f->link)
        set_timer(d);
    return true;
}
