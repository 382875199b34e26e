#include "harness/judge/recording.h"

#include "base/sys/file.h"
#include "harness/judge/coverage.h"
#include "harness/judge/own_checks.h"
#include "harness/judge/paces.h"

#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

static int not_a_run(struct buf *complaint, const char *dir, const char *missing) {
    printable_puts(complaint, dir);
    buf_printf(complaint, " is no run: %s is missing\n", missing);
    return -1;
}

static int complain(struct buf *complaint, const struct err *err) {
    buf_printf(complaint, "%s\n", err->msg);
    return -1;
}

static int open_folder(struct recording *r, const char *dir, struct buf *complaint) {
    int code = folder_open(&r->folder, dir, NULL);
    if (code == 0)
        return 0;
    printable_puts(complaint, dir);
    if (code == -ENOTDIR)
        buf_puts(complaint, " is no directory; give the directory of a run\n");
    else
        buf_printf(complaint, ": %s; give the directory of a run, as printed at its end\n",
                   strerror(-code));
    return -1;
}

/* Of a run, whose directory may be a stranger's. Returns a descriptor, or -1. */
static int open_part(const struct recording *r, const char *name, struct buf *complaint) {
    struct err err;
    int fd = folder_open_file(&r->folder, name, &err);
    if (fd >= 0)
        return fd;
    return fd == -ENOENT ? not_a_run(complaint, r->dir, name) : complain(complaint, &err);
}

/* The history, and that there is a scenario to judge it by. */
static int open_history(struct recording *r, const struct recording_source *from,
                        struct buf *complaint) {
    struct err err;
    if (!from->dir) {
        int fd = file_open_plain(from->history, &err);
        return fd >= 0 ? fd : complain(complaint, &err);
    }
    if (open_folder(r, from->dir, complaint) < 0)
        return -1;
    FILE_CLOSE int scenario = open_part(r, "scenario.yaml", complaint);
    return scenario < 0 ? -1 : open_part(r, "history.jsonl", complaint);
}

static struct scenario *load_scenario(const char *path, struct buf *complaint) {
    char within[PATH_MAX];
    struct diagnostics d = {.within =
                                source_root(path, false, within, sizeof(within)) ? within : NULL};
    struct scenario *s = scenario_load(path, NULL, &d);
    if (!s)
        buf_puts(complaint, buf_str(&d.out));
    diagnostics_fini(&d);
    return s;
}

static void judge(struct recording *r, int history, const struct recording_source *from) {
    const struct folder *folder = from->dir ? &r->folder : NULL;
    rounds_load(&r->rounds, !r->scenario->torchrun_semantics, &r->history);
    struct trial t = {.scenario = r->scenario,
                      .history = &r->history,
                      .rounds = &r->rounds,
                      .judged = from->judged,
                      .judged_arg = from->judged_arg};
    verdict_judge(&r->verdict, &t);
    own_checks_judge(&r->verdict, r->scenario, &r->history, history, folder, from->programs);
    if (folder) {
        coverage_recall(folder, &r->verdict);
        paces_recall(folder, &r->verdict);
    }
    r->run = (struct recorded_run){.dir = r->dir,
                                   .folder = folder,
                                   .scenario = r->scenario,
                                   .history = &r->history,
                                   .rounds = &r->rounds,
                                   .verdict = &r->verdict};
}

int recording_read(struct recording *r, const struct recording_source *from,
                   struct buf *complaint) {
    ARENA_FINI struct arena a = {0};
    struct err err;
    *r = (struct recording){.dir = from->dir ? from->dir : from->history, .folder = FOLDER_NONE};
    const char *scenario =
        from->scenario ? from->scenario : arena_printf(&a, "%s/scenario.yaml", from->dir);
    const char *history =
        from->history ? from->history : arena_printf(&a, "%s/history.jsonl", from->dir);
    FILE_CLOSE int fd = open_history(r, from, complaint);
    int rc = fd < 0 ? -1 : 0, own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (rc == 0)
        rc = (r->scenario = load_scenario(scenario, complaint)) ? 0 : -1;
    if (rc < 0)
        file_close(&own);
    else if (history_load_from(&r->history, own, history, &err) < 0)
        rc = complain(complaint, &err);
    if (rc == 0)
        judge(r, fd, from);
    else
        recording_fini(r);
    return rc;
}

int recording_load(struct recording *r, const char *dir, struct buf *complaint) {
    return recording_read(r, &(struct recording_source){.dir = dir, .programs = true}, complaint);
}

void recording_fini(struct recording *r) {
    if (!r)
        return;
    rounds_fini(&r->rounds);
    history_fini(&r->history);
    folder_close(&r->folder);
    r->scenario = scenario_free(r->scenario);
}
