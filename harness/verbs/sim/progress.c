#include "harness/verbs/sim/progress.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/printing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;

/* A line that can be written over: not where control characters are printed. */
static bool is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && !str_eq(term, "dumb");
}

void progress_begin(struct progress *p, uint64_t seeds, bool silent) {
    *p = (struct progress){.seeds = seeds, .begun_ns = clock_monotonic_ns()};
    p->form = silent ? PROGRESS_NONE : is_terminal() ? PROGRESS_BAR : PROGRESS_LINES;
    p->next_ns = progress_due_ns(0);
}

int64_t progress_due_ns(int64_t after_ns) {
    int64_t step_ns = after_ns < 60 * second_ns ? 10 * second_ns : 60 * second_ns;
    return (after_ns / step_ns + 1) * step_ns;
}

void progress_text(const struct progress *p, const struct seeds_tally *t, int64_t after_ns,
                   struct buf *out) {
    double seconds = (double)after_ns / 1e9, part = (double)t->seeds / (double)p->seeds;
    int marks = 0;
    for (int i = 0; i < SIM_MARKS_N; i++)
        marks += t->marks[i] > 0;
    buf_printf(out, "%.0f %%  %" PRIu64 " seeds  %.0f an hour  marks %d of %d  violations %" PRIu64,
               100 * part, t->seeds, seconds > 0 ? (double)t->seeds / seconds * 3600 : 0, marks,
               SIM_MARKS_N, t->violated);
}

/* A line that is longer than the terminal is wide could not be written over. */
static int width(void) {
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;
}

static void erase(void) {
    static const char line[] = "\r\033[K";
    printing_put(stdout, line, sizeof(line) - 1);
}

void progress_seen(struct progress *p, const struct seeds_tally *t) {
    int64_t after_ns = clock_monotonic_ns() - p->begun_ns;
    BUF_FINI struct buf text = {0};
    if (p->form == PROGRESS_NONE || (p->form == PROGRESS_LINES && after_ns < p->next_ns))
        return;
    progress_text(p, t, after_ns, &text);
    if (p->form == PROGRESS_BAR) {
        erase();
        printf("%.*s", width(), buf_str(&text));
    } else {
        printf("%5" PRId64 " s    %s\n", after_ns / second_ns, buf_str(&text));
    }
    fflush(stdout);
    p->next_ns = progress_due_ns(after_ns);
}

void progress_end(struct progress *p) {
    if (p->form == PROGRESS_BAR)
        erase();
    p->form = PROGRESS_NONE;
}
