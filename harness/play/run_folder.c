#include "harness/play/run_folder.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SPACE_WANTED = 16 << 20 };

static void file_name_of(const char *name, char *ret, size_t size) {
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        ret[n++] = strchr("/ \t\"'\\:*?<>|", *name) ? '-' : *name;
    ret[n] = '\0';
}

int run_folder_elsewhere(int code, struct err *err) {
    struct err why = *err;
    return err_say(err, code, "%s; another place can be named with --out", why.msg);
}

/* A disk that fills up in the middle of a run looks like a job that fails. */
static int check_space(const char *dir, struct err *err) {
    struct statvfs fs;
    if (statvfs(dir, &fs) < 0 || fs.f_bavail * fs.f_frsize >= SPACE_WANTED)
        return 0;
    rmdir(dir);
    return err_say(err, -ENOSPC,
                   "there are %llu kB left where %s would be, too few for logs and checkpoints; "
                   "make room, or name another place with --out",
                   (unsigned long long)(fs.f_bavail * fs.f_frsize / 1024), dir);
}

/* runs/<scenario>-<seed>-<time>; a second one in the same second gets a number. */
int suite_make_dir(const char *out, const char *title, uint64_t seed, struct folder *ret,
                   struct err *err) {
    char name[128], when[32], absolute[4096], dir[4300];
    time_t now = time(NULL);
    file_name_of(title, name, sizeof(name));
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", localtime(&now));
    int r = file_make_dirs(out, 0777, err);
    if (r < 0)
        return run_folder_elsewhere(r, err);
    if (!realpath(out, absolute))
        return err_set(err, -errno, "find %s", out);
    for (int i = 0; i < 1000; i++) {
        snprintf(dir, sizeof(dir), i ? "%s/%s-%llu-%s-%d" : "%s/%s-%llu-%s", absolute, name,
                 (unsigned long long)seed, when, i + 1);
        if (mkdir(dir, 0777) == 0)
            return (r = check_space(dir, err)) ? r : folder_open(ret, dir, err);
        if (errno != EEXIST)
            return run_folder_elsewhere(err_set(err, -errno, "make the run directory %s", dir),
                                        err);
    }
    return err_set(err, -EEXIST, "make a run directory in %s", out);
}

int run_folder_write(const struct folder *dir, const char *name, const struct buf *text,
                     struct err *err) {
    return folder_write(dir, name, text->data, text->len, err);
}

int run_folder_put_inputs(const struct plan *p, const struct folder *dir, struct err *err) {
    BUF_FINI struct buf text = {0};
    scenario_print(p->scenario, &text);
    int r = run_folder_write(dir, "scenario.yaml", &text, err);
    buf_clear(&text);
    plan_json(p, &text);
    if (r == 0)
        r = run_folder_write(dir, "plan.json", &text, err);
    return r;
}
