#include "harness/verbs/watch/screen.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/printing.h"
#include "reports/headway.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { ROWS_ASSUMED = 24 };
static const int64_t redraw_ns = 100000000;

struct screen {
    FILE *out;
    screen_fn *fn;
    void *arg;
    struct loop_source *due, *resized;
    int64_t drawn_ns;
    int lines; /* of the frame that is there */
    bool waits;
};

bool screen_has_frames(FILE *out) {
    return headway_rewrites(out);
}

static int rows_of(FILE *out) {
    struct winsize w;
    return ioctl(printing_fd(out), TIOCGWINSZ, &w) == 0 && w.ws_row ? w.ws_row : ROWS_ASSUMED;
}

/* The cursor stands behind the last line of the frame: so many lines up is its first. */
static void draw(struct screen *s) {
    BUF_FINI struct buf frame = {0}, text = {0};
    struct report_style style = report_style_of(s->out);
    s->fn(s->arg, &style, rows_of(s->out) - 1, &frame);
    if (s->lines)
        buf_printf(&text, "\033[%dA", s->lines);
    s->lines = 0;
    for (const char *at = buf_str(&frame); *at; s->lines++) {
        size_t n = strcspn(at, "\n");
        buf_puts(&text, "\r");
        buf_put(&text, at, n);
        buf_puts(&text, "\033[K\n");
        at += n + (at[n] == '\n');
    }
    buf_puts(&text, "\033[J");
    printing_put(s->out, text.data, text.len);
    fflush(s->out);
    s->drawn_ns = clock_monotonic_ns();
    s->waits = false;
}

static void on_due(void *arg, int64_t now) {
    draw(arg);
}

/* What was broken into more lines than it had cannot be taken away; the new frame stands below it. */
static void on_resize(void *arg, int signo) {
    struct screen *s = arg;
    s->lines = 0;
    screen_changed(s);
}

struct screen *screen_new(struct loop *loop, FILE *out, screen_fn *fn, void *arg) {
    struct screen *s = mem_new(struct screen);
    *s = (struct screen){.out = out, .fn = fn, .arg = arg, .drawn_ns = -redraw_ns};
    s->due = loop_timer(loop, on_due, s);
    s->resized = loop_signal(loop, SIGWINCH, on_resize, s);
    return s;
}

void screen_changed(struct screen *s) {
    if (s->waits)
        return;
    s->waits = true;
    loop_timer_at(s->due, s->drawn_ns + redraw_ns);
}

struct screen *screen_free(struct screen *s) {
    if (!s)
        return NULL;
    draw(s);
    loop_source_free(s->due);
    loop_source_free(s->resized);
    free(s);
    return NULL;
}
