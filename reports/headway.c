#include "reports/headway.h"

#include "base/json.h"
#include "base/printable.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/printing.h"
#include "reports/page.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;
static const int64_t redraw_ns = 100000000;

/* ---- where it is said ---- */

bool headway_rewrites(FILE *out) {
    const char *term = getenv("TERM");
    return printing_at_terminal(out) && term && *term && !str_eq(term, "dumb");
}

int headway_columns(FILE *out) {
    struct winsize w;
    int64_t columns = 80;
    if (ioctl(printing_fd(out), TIOCGWINSZ, &w) == 0 && w.ws_col)
        return w.ws_col;
    str_to_i64(getenv("COLUMNS") ? getenv("COLUMNS") : "", 1, 10000, &columns);
    return (int)columns;
}

int64_t headway_due_ns(int64_t after_ns) {
    int64_t step_ns = after_ns < 60 * second_ns ? 10 * second_ns : 60 * second_ns;
    return (after_ns / step_ns + 1) * step_ns;
}

/* ---- what is said ---- */

void headway_put_time(struct buf *out, int64_t ns) {
    int64_t s = ns / second_ns + (ns % second_ns > 0);
    if (s < 120)
        buf_printf(out, "%" PRId64 " s", s);
    else if (s >= 7200)
        buf_printf(out, "%" PRId64 "h %" PRId64 "m", s / 3600, s % 3600 / 60);
    else if (s % 60)
        buf_printf(out, "%" PRId64 "m %" PRId64 "s", s / 60, s % 60);
    else
        buf_printf(out, "%" PRId64 "m", s / 60);
}

static int64_t left_after(const struct headway *h, int64_t after_ns) {
    int64_t most_ns = h->spec.until_ns ? h->spec.until_ns - h->begun_ns - after_ns : INT64_MAX;
    int64_t left_ns = h->left_ns;
    if (left_ns < 0 && h->spec.total)
        left_ns = tempo_left_ns(&h->tempo, after_ns, h->spec.total);
    if (left_ns < 0 && (!h->spec.until_ns || h->spec.total))
        return -1;
    most_ns = most_ns < 0 ? 0 : most_ns;
    return left_ns < 0 || left_ns > most_ns ? most_ns : left_ns;
}

int64_t headway_left_ns(const struct headway *h) {
    return left_after(h, h->begun_ns ? clock_monotonic_ns() - h->begun_ns : 0);
}

/* In the words of whoever waits: what goes slowly is told by the minute. */
static void put_rate(const struct headway *h, struct buf *out) {
    static const struct {
        double factor;
        const char *word;
    } by[] = {{1, "a second"}, {60, "a minute"}, {3600, "an hour"}};
    double rate = tempo_rate(&h->tempo);
    size_t i = h->spec.hourly || rate * 60 < 1 ? 2 : rate < 1 ? 1 : 0;
    if (rate > 0 || h->spec.hourly)
        buf_printf(out, "%.*f %s", rate * by[i].factor < 10 && rate > 0, rate * by[i].factor,
                   by[i].word);
}

/* Parts as they stand in the line, and as they stay when there is not room for all. */
enum part { PART_SHARE, PART_COUNT, PART_RATE, PART_LEFT, PART_NOTE, PARTS };
static const enum part by_weight[PARTS] = {PART_SHARE, PART_LEFT, PART_COUNT, PART_NOTE, PART_RATE};

static void put_parts(const struct headway *h, int64_t after_ns, const char *note,
                      struct buf parts[PARTS]) {
    int64_t total = h->spec.total, left_ns = left_after(h, after_ns);
    if (total)
        buf_printf(&parts[PART_SHARE], "%.0f %%", 100.0 * (double)h->done / (double)total);
    buf_printf(&parts[PART_COUNT], "%" PRId64, h->done);
    if (total)
        buf_printf(&parts[PART_COUNT], " of %" PRId64, total);
    buf_printf(&parts[PART_COUNT], " %s", h->spec.unit);
    put_rate(h, &parts[PART_RATE]);
    if (left_ns >= 0 && after_ns >= second_ns) {
        buf_puts(&parts[PART_LEFT], "about ");
        headway_put_time(&parts[PART_LEFT], left_ns);
        buf_puts(&parts[PART_LEFT], " left");
    }
    printable_puts(&parts[PART_NOTE], note ? note : "");
}

void headway_text(const struct headway *h, int64_t after_ns, const char *note, int columns,
                  struct buf *out) {
    struct buf parts[PARTS] = {{0}};
    bool stays[PARTS] = {false};
    int used = 0;
    put_parts(h, after_ns, note, parts);
    for (size_t i = 0; i < PARTS; i++) {
        enum part p = by_weight[i];
        int wide = page_columns(buf_str(&parts[p])), gap = used ? 2 : 0;
        stays[p] = wide && (!columns || used + gap + wide <= columns);
        used += stays[p] ? gap + wide : 0;
    }
    for (size_t p = 0; p < PARTS; p++) {
        if (stays[p])
            buf_printf(out, "%s%s", out->len ? "  " : "", buf_str(&parts[p]));
        buf_fini(&parts[p]);
    }
}

void headway_object(const struct headway *h, int64_t after_ns, const char *note, bool over,
                    struct buf *out) {
    struct json_writer w = {.out = out};
    double rate = tempo_rate(&h->tempo);
    int64_t left_ns = over ? 0 : left_after(h, after_ns);
    json_object(&w, NULL);
    json_put_string(&w, "progress", h->spec.verb);
    if (h->spec.of)
        json_put_string(&w, "of", h->spec.of);
    json_put_string(&w, "unit", h->spec.unit);
    json_put_i64(&w, "done", h->done);
    json_put_known(&w, "total", h->spec.total > 0, h->spec.total);
    if (rate > 0)
        json_put_double(&w, "rate", rate);
    else
        json_put_null(&w, "rate");
    if (left_ns >= 0)
        json_put_double(&w, "left_s", (double)left_ns / 1e9);
    else
        json_put_null(&w, "left_s");
    json_put_double(&w, "elapsed_s", (double)after_ns / 1e9);
    json_put_bool(&w, "over", over);
    if (note && *note)
        json_put_string(&w, "note", note);
    json_end_object(&w);
}

/* ---- saying it ---- */

/* Who does not read misses some: no work waits for whoever looks on. */
static void write_object(struct headway *h, int64_t after_ns, const char *note, bool over) {
    struct pollfd room = {.fd = h->spec.wish.json, .events = POLLOUT};
    BUF_FINI struct buf text = {0};
    if (room.fd < 0 || (!over && h->json_ns >= 0 && after_ns - h->json_ns < redraw_ns))
        return;
    headway_object(h, after_ns, note, over, &text);
    buf_putc(&text, '\n');
    if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
        return;
    if (write(room.fd, text.data, text.len) < 0)
        h->spec.wish.json = -1; /* the reader is gone */
    h->json_ns = after_ns;
}

void headway_begin(struct headway *h, const struct headway_spec *spec) {
    *h = (struct headway){.spec = *spec, .begun_ns = clock_monotonic_ns(), .left_ns = -1};
    bool shown = !spec->own_line && !spec->wish.quiet;
    if (shown)
        h->form = headway_rewrites(spec->out) ? HEADWAY_BAR
                  : spec->no_lines            ? HEADWAY_NONE
                                              : HEADWAY_LINES;
    h->next_ns = headway_due_ns(0);
    h->json_ns = -1;
    h->drawn_ns = -redraw_ns;
    tempo_begin(&h->tempo, 0, 0);
    write_object(h, 0, NULL, false);
}

void headway_erase(struct headway *h) {
    static const char line[] = "\r\033[K";
    if (!h->drawn)
        return;
    printing_put(h->spec.out, line, sizeof(line) - 1);
    fflush(h->spec.out);
    h->drawn = false;
    h->drawn_ns = -redraw_ns;
}

static void draw(struct headway *h, int64_t after_ns, const char *note) {
    BUF_FINI struct buf text = {0};
    /* A line as wide as the terminal would begin another one. */
    headway_text(h, after_ns, note, headway_columns(h->spec.out) - 1, &text);
    headway_erase(h);
    fputs(buf_str(&text), h->spec.out);
    fflush(h->spec.out);
    h->drawn = true;
    h->drawn_ns = after_ns;
}

static void say(struct headway *h, int64_t after_ns, const char *note) {
    BUF_FINI struct buf text = {0};
    headway_text(h, after_ns, note, 0, &text);
    fprintf(h->spec.out, "%5" PRId64 " s    %s\n", after_ns / second_ns, buf_str(&text));
    fflush(h->spec.out);
    h->next_ns = headway_due_ns(after_ns);
}

void headway_at(struct headway *h, int64_t done, const char *note) {
    if (!h->begun_ns)
        return;
    int64_t after_ns = clock_monotonic_ns() - h->begun_ns;
    h->done = done;
    tempo_note(&h->tempo, after_ns, done);
    write_object(h, after_ns, note, false);
    if (h->form == HEADWAY_BAR && after_ns - h->drawn_ns >= redraw_ns)
        draw(h, after_ns, note);
    else if (h->form == HEADWAY_LINES && after_ns >= h->next_ns)
        say(h, after_ns, note);
}

void headway_expect(struct headway *h, int64_t left_ns) {
    h->left_ns = left_ns;
}

void headway_end(struct headway *h) {
    headway_erase(h);
    if (h->begun_ns)
        write_object(h, clock_monotonic_ns() - h->begun_ns, NULL, true);
    h->form = HEADWAY_NONE;
    h->spec.wish.json = -1;
}
