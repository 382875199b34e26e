/* How long a recorded run takes to be read and judged, and each report of the table to be rendered
 * from it.
 *
 *     spawn_reports DIR
 *
 * Prints "judge CPU_MS WALL_MS", "report:NAME CPU_MS WALL_MS BYTES" of each, and "all CPU_MS
 * WALL_MS". CPU_MS is what this process has used of processors, which a neighbour makes little
 * longer. Exit: 0, 1 when a report was refused, 3 when there is no run to be read. */
#include "base/sys/clock.h"
#include "harness/judge/recording.h"
#include "reports/report.h"

#include <stdio.h>

struct stamp {
    int64_t cpu_ns, wall_ns;
};

static struct stamp now(void) {
    return (struct stamp){clock_cpu_ns(), clock_monotonic_ns()};
}

static void put(const char *kind, const char *name, struct stamp began) {
    struct stamp end = now();
    printf("%s%s %.1f %.1f", kind, name, (double)(end.cpu_ns - began.cpu_ns) / 1e6,
           (double)(end.wall_ns - began.wall_ns) / 1e6);
}

static int render(const struct report *report, const struct recorded_run *run) {
    struct report_style style = {0};
    BUF_FINI struct buf out = {0};
    struct err err = {0};
    struct stamp began = now();
    if (report->render(run, &style, &out, &err) < 0) {
        fprintf(stderr, "spawn_reports: %s: %s\n", report->name, err.msg);
        return 1;
    }
    put("report:", report->name, began);
    printf(" %zu\n", out.len);
    return 0;
}

int main(int argc, char **argv) {
    struct recording r;
    BUF_FINI struct buf complaint = {0};
    struct stamp began = now();
    struct recording_source from = {.dir = argc == 2 ? argv[1] : "."};
    int failed = 0;
    if (recording_read(&r, &from, &complaint) < 0) {
        fprintf(stderr, "spawn_reports: %s", buf_str(&complaint));
        return 3;
    }
    put("judge", "", began);
    putchar('\n');
    for (size_t i = 0; reports[i]; i++)
        failed |= render(reports[i], &r.run);
    put("all", "", began);
    putchar('\n');
    recording_fini(&r);
    return failed;
}
