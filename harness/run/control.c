#include "harness/run/control.h"

#include "harness/history/goodput.h"
#include "harness/plan/building.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 256 << 20, CONTROL_VERSION = 7 };

struct scenario control_scenario(const struct scenario *s) {
    struct scenario c = *s;
    c.timeline = NULL;
    c.timeline_n = 0;
    c.probes_n = 0;
    /* What the job is asked to tell it must be asked here too. */
    c.expect = (struct expect){
        .outcome = OUTCOME_SUCCEEDED, .weights = s->expect.weights, .epochs = s->expect.epochs};
    /* In a control run nothing switches on what the job could use. */
    int wanted = c.job.max_nodes < c.cluster.nodes ? c.job.max_nodes : c.cluster.nodes;
    if (c.cluster.start < wanted)
        c.cluster.start = wanted;
    return c;
}

/* ---- the key ---- */

static int hash_file(struct sha256 *sum, const char *path, struct err *err) {
    struct buf content = {0};
    int r = file_read(path, FILE_MAX, &content, err);
    sha256_update(sum, path, strlen(path) + 1);
    sha256_update(sum, content.data, content.len);
    buf_fini(&content);
    return r;
}

/* What the nodes see there, when it is a file. Those of the kernel's have no size, and some have no
 * end. */
static bool hash_theirs(struct sha256 *sum, const struct plan *p, const char *path) {
    struct buf content = {0};
    struct stat st;
    if (building_makes(&p->scenario->job.build, path))
        return true; /* it may not be there yet, and follows from the key of the build */
    FILE_CLOSE int fd = plan_open(p, path);
    bool file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                st.st_size <= FILE_MAX && file_read_fd(fd, FILE_MAX, &content, NULL) == 0;
    if (file) {
        sha256_update(sum, path, strlen(path) + 1);
        sha256_update(sum, content.data, content.len);
    }
    buf_fini(&content);
    return file;
}

/* The program as the job will find it. Falls back to the name. */
static const char *find_program(const struct plan *p, struct arena *a, const char *name) {
    const char *file = plan_find_program(p, a, name, plan_path(&p->scenario->job));
    return file ? file : name;
}

/* A tree of Debian's says here which packages it holds, in which versions. */
static const char packages[] = "/var/lib/dpkg/status";

static int hash_files(struct sha256 *sum, struct arena *a, const struct plan *p, const char *bin,
                      struct err *err) {
    const struct job_spec *job = &p->scenario->job;
    static const char *const ours[] = {"rankrun", "rankprobe"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < 2; i++)
        r = hash_file(sum, arena_printf(a, "%s/%s", bin, ours[i]), err);
    const char *own = arena_printf(a, "%s/%s", bin, job->run[0]);
    if (r == 0 && !strchr(job->run[0], '/') && access(own, X_OK) == 0)
        r = hash_file(sum, own, err);
    else
        hash_theirs(sum, p, find_program(p, a, job->run[0]));
    for (size_t i = 1; i < job->run_n; i++)
        hash_theirs(sum, p, job->run[i]);
    for (size_t i = 0; p->launcher && p->launcher[i]; i++)
        hash_theirs(sum, p, i ? p->launcher[i] : find_program(p, a, p->launcher[i]));
    if (p->rootfs)
        hash_theirs(sum, p, packages);
    return r;
}

static bool uses_seed(const struct job_spec *job) {
    for (size_t i = 0; i < job->run_n; i++)
        if (strstr(job->run[i], "{seed}"))
            return true;
    for (size_t i = 0; i < job->env_n; i++)
        if (strstr(job->env[i].value, "{seed}"))
            return true;
    return false;
}

/* A result of one kind of device says nothing of another, nor of the processor. */
static void put_devices(const struct plan *p, struct buf *text) {
    for (size_t i = 0; i < p->nodes_n; i++)
        for (size_t k = 0; k < p->nodes[i].devices_n; k++)
            buf_printf(text, "device %s %s\n", p->nodes[i].name, p->nodes[i].devices[k]->name);
    if (p->devices_n)
        buf_printf(text, "driver %s\n", p->driver);
}

/* The reference job hears of options in its environment too. */
static void put_options(struct buf *text) {
    const char *said = getenv("RANKTRAIN_OPTIONS");
    if (said)
        buf_printf(text, "options %s\n", said);
}

int control_key(const struct plan *p, const char *bin, char ret[65], struct err *err) {
    struct scenario s = control_scenario(p->scenario);
    s.name = s.about = s.source = s.file = "";
    s.tags_n = 0;
    s.limits = (struct limits){0}; /* how long it was waited for changes nothing of what came */
    s.has_seed = false;
    s.cluster.isolation = p->isolation;
    s.seed = uses_seed(&s.job) ? p->seed : 0;
    struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    struct sha256 sum;
    scenario_print(&s, &text);
    buf_printf(&text, "\nversion %s\nseed %llu\n", RANKQUAKE_VERSION, (unsigned long long)s.seed);
    buf_printf(&text, "python %s torch %s\n", p->python.version, p->python.torch);
    put_options(&text);
    put_devices(p, &text);
    char built[65] = "";
    int r = s.job.build.run ? building_key(&s.job.build, built, err) : 0;
    if (*built)
        buf_printf(&text, "built %s\n", built);
    sha256_init(&sum);
    sha256_update(&sum, text.data, text.len);
    if (r == 0)
        r = hash_files(&sum, &a, p, bin, err);
    if (r == 0)
        sha256_hex(&sum, ret);
    buf_fini(&text);
    return r;
}

/* ---- the cache ---- */

enum cache_place { CACHE_GIVEN, CACHE_IN_HOME, CACHE_IN_TMP };

static enum cache_place cache_base(char ret[PATH_MAX]) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && *xdg == '/') {
        str_copy(ret, PATH_MAX, xdg);
        return CACHE_GIVEN;
    }
    bool has_home = home && *home;
    snprintf(ret, PATH_MAX, "%s/.cache", has_home ? home : "/tmp");
    return has_home ? CACHE_IN_HOME : CACHE_IN_TMP;
}

/* A home that is not there is a container's, or of an account that is to have none. */
static int check_home(const char *home, struct err *err) {
    if (file_exists(home))
        return 0;
    return err_say(err, -ENOENT, "HOME is %s, which does not exist and is not made for a cache",
                   home);
}

/* Anybody may write into /tmp. */
static int check_own(const char *base, struct err *err) {
    struct stat st;
    if ((mkdir(base, 0700) == 0 || errno == EEXIST) && lstat(base, &st) == 0 &&
        S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
        return 0;
    return err_say(err, -EPERM,
                   "%s is not yours alone, so nothing is kept there: set HOME or XDG_CACHE_HOME",
                   base);
}

int cache_dir(const char *kind, const char *key, char *ret, size_t size, struct err *err) {
    char base[PATH_MAX];
    enum cache_place place = cache_base(base);
    int r = place == CACHE_IN_TMP    ? check_own(base, err)
            : place == CACHE_IN_HOME ? check_home(getenv("HOME"), err)
                                     : 0;
    if (r == 0 && snprintf(ret, size, "%s/rankquake/%s/%s", base, kind, key) >= (int)size)
        r = err_say(err, -ENAMETOOLONG, "the cache folder's path is too long");
    return r;
}

/* The folder to begin with, and the name from there on. */
static int cache_root(const char *path, bool make, struct folder *ret, const char **ret_name,
                      struct err *err) {
    char base[PATH_MAX];
    const char *slash = strrchr(path, '/');
    cache_base(base);
    size_t n = strlen(base);
    if (strncmp(path, base, n) == 0 && path[n] == '/')
        *ret_name = path + n + 1;
    else if (slash && snprintf(base, sizeof(base), "%.*s", (int)(slash - path), path) >= 0)
        *ret_name = slash + 1;
    else
        return err_say(err, -EINVAL, "%s is no file in a folder", path);
    int r = make ? file_make_dirs(base, 0777, err) : 0;
    return r ? r : folder_open(ret, base, err);
}

int cache_enter(const char *path, bool make, struct folder *ret, const char **ret_name,
                struct err *err) {
    struct folder root;
    char way[PATH_MAX];
    const char *name = "";
    int r = cache_root(path, make, &root, &name, err);
    if (r)
        return r;
    str_copy(way, sizeof(way), name);
    char *slash = strrchr(way, '/');
    if (ret_name && slash)
        *slash = '\0';
    bool here = ret_name && !slash;
    if (make && !here)
        r = folder_make(&root, way, 0777, err);
    if (r == 0)
        r = folder_enter(ret, &root, here ? "." : way, err);
    if (r == 0 && ret_name)
        *ret_name = here ? name : strrchr(name, '/') + 1;
    folder_close(&root);
    return r;
}

int control_dir(const char *key, char *ret, size_t size, struct err *err) {
    return cache_dir("control", key, ret, size, err);
}

int control_read(const char *dir, struct control *ret, struct err *err) {
    char path[PATH_MAX];
    struct folder cache = FOLDER_NONE;
    const char *name = "";
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    snprintf(path, sizeof(path), "%s/control.json", dir);
    int r = cache_enter(path, false, &cache, &name, err);
    if (r == 0)
        r = folder_read(&cache, name, 1 << 16, &text, err);
    const struct json *j = r == 0 ? json_parse(&a, buf_str(&text), text.len, err) : NULL;
    const struct json *loss = json_get(j, "loss");
    if (j && json_get_i64(j, "v", 0) == CONTROL_VERSION) {
        *ret = (struct control){.cached = true,
                                .step_ns = json_get_i64(j, "step_ns", 0),
                                .pace_ns = json_get_i64(j, "pace_ns", 0),
                                .first_step = json_get_i64(j, "first_step", -1),
                                .last_step = json_get_i64(j, "last_step", -1),
                                .told = json_get_bool(j, "told", false),
                                .beside = json_get_bool(j, "beside", false),
                                .kept = json_get_i64(j, "kept", -1),
                                .saves_told = json_get_bool(j, "saves_told", false),
                                .commits = json_get_i64(j, "commits", 0),
                                .saved = json_get_i64(j, "saved", -1),
                                .saved_gap = json_get_i64(j, "saved_gap", 0),
                                .workers = (int)json_get_i64(j, "workers", 0),
                                .named = (int)json_get_i64(j, "named", 0),
                                .has_loss = loss != NULL,
                                .loss = json_number(loss, 0),
                                .start_ns = json_get_i64(j, "start_ns", 0),
                                .train_ns = json_get_i64(j, "train_ns", 0),
                                .steps_ns = json_get_i64(j, "steps_ns", 0)};
        str_copy(ret->made, sizeof(ret->made), json_get_string(j, "dir", ""));
        str_copy(ret->model, sizeof(ret->model), json_get_string(j, "model", ""));
        str_copy(ret->label, sizeof(ret->label), json_get_string(j, "label", ""));
        str_copy(ret->saves, sizeof(ret->saves), json_get_string(j, "saves", ""));
        str_copy(ret->dir, sizeof(ret->dir), dir);
    } else if (r == 0) {
        r = err_say(err, -ENOENT, "%s: not a control run's result", path);
    }
    folder_close(&cache);
    return r;
}

static int compare_i64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median time between two steps of one worker. */
static int64_t median_step_ns(const struct history *h, int64_t pid) {
    int64_t *gaps = mem_array(int64_t, h->n + 1), before = 0;
    size_t n = 0;
    history_each(r, h) {
        if (r->pid != pid || !record_is(r, "step"))
            continue;
        if (before)
            gaps[n++] = r->t_ns - before;
        before = r->t_ns;
    }
    qsort(gaps, n, sizeof(*gaps), compare_i64);
    int64_t median = n ? gaps[n / 2] : 0;
    free(gaps);
    return median;
}

static void put_control(struct buf *out, const struct control *c) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_i64(&w, "v", CONTROL_VERSION);
    json_put_string(&w, "model", c->model);
    json_put_string(&w, "label", c->label);
    json_put_i64(&w, "step_ns", c->step_ns);
    json_put_i64(&w, "pace_ns", c->pace_ns);
    json_put_i64(&w, "first_step", c->first_step);
    json_put_i64(&w, "last_step", c->last_step);
    json_put_bool(&w, "told", c->told);
    if (c->beside)
        json_put_bool(&w, "beside", true);
    json_put_string(&w, "saves", c->saves);
    json_put_bool(&w, "saves_told", c->saves_told);
    json_put_i64(&w, "commits", c->commits);
    json_put_i64(&w, "saved", c->saved);
    json_put_i64(&w, "saved_gap", c->saved_gap);
    json_put_i64(&w, "workers", c->workers);
    json_put_i64(&w, "named", c->named);
    if (c->has_loss)
        json_put_double(&w, "loss", c->loss);
    json_put_i64(&w, "kept", c->kept);
    json_put_i64(&w, "start_ns", c->start_ns);
    json_put_i64(&w, "train_ns", c->train_ns);
    json_put_i64(&w, "steps_ns", c->steps_ns);
    json_put_string(&w, "dir", c->dir);
    json_end_object(&w);
    buf_putc(out, '\n');
}

/* Which steps its workers told. What came from their output rather than from themselves cannot be
 * held. */
static void take_steps(const struct history *h, struct control *ret, int64_t *ret_begin,
                       int64_t *ret_end) {
    ret->first_step = ret->last_step = -1;
    history_each(r, h) {
        if (r->source != SOURCE_JOB || !record_is(r, "step"))
            continue;
        int64_t step = record_i64(r, "step", -1);
        ret->first_step = ret->first_step < 0 || step < ret->first_step ? step : ret->first_step;
        ret->last_step = step > ret->last_step ? step : ret->last_step;
        ret->told = !*record_text(r, "from");
        *ret_begin = *ret_begin ? *ret_begin : r->t_ns;
        *ret_end = r->t_ns;
    }
}

/* How a save that is going on is known of: best while its bytes are written. */
static void take_saves(const struct history *h, struct control *ret) {
    static const char *const kinds[] = {"checkpoint-write", "checkpoint-begin"};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds) && !*ret->saves; k++)
        history_each(r, h) if (r->source == SOURCE_JOB && record_is(r, kinds[k])) {
            str_copy(ret->saves, sizeof(ret->saves), kinds[k]);
            ret->saves_told = !*record_text(r, "from");
        }
}

/* As one of its workers tells them: another may tell each of them too. */
static void take_commits(const struct history *h, struct control *ret) {
    int64_t first = -1;
    history_each(r, h) if (r->source == SOURCE_JOB && record_is(r, "checkpoint-commit")) {
        first = first < 0 ? record_i64(r, "pid", 0) : first;
        ret->commits += record_i64(r, "pid", 0) == first;
    }
}

/* Of the last step: the mean over all who told one. */
static void take_loss(const struct history *h, struct control *ret) {
    double sum = 0;
    int n = 0;
    history_each(r, h) {
        const struct json *loss = record_get(r, "loss");
        if (r->source != SOURCE_JOB || !record_is(r, "step") || !loss ||
            record_i64(r, "step", -1) != ret->last_step)
            continue;
        sum += json_number(loss, 0);
        n++;
    }
    ret->has_loss = n && isfinite(sum);
    ret->loss = n ? sum / n : 0;
}

/* How many checkpoints it keeps: where it has cleared some away, or nothing is known of that. */
static int64_t take_kept(const struct history *h) {
    const struct record *look = history_newest(h, SOURCE_DISK, "checkpoints");
    const struct json *complete = look ? record_get(look, "complete") : NULL;
    int64_t commits = 0, last = -1;
    history_each(r, h) {
        int64_t step = record_i64(r, "step", -1);
        bool commit = r->source == SOURCE_JOB && record_is(r, "checkpoint-commit");
        commits += commit && step > last;
        last = commit && step > last ? step : last;
    }
    return complete && complete->length && commits > (int64_t)complete->length
               ? (int64_t)complete->length
               : -1;
}

static int64_t wider(int64_t gap, int64_t from, int64_t to) {
    return to - from > gap ? to - from : gap;
}

/* Between commits that one worker has told; 0: fewer than two, or the last is not the newest that lies there,
 * so that they count otherwise. Some say the step that comes next. */
static int64_t told_gap(const struct history *h, int64_t saved) {
    int64_t pid = -1, last = -1, gap = 0;
    history_each(r, h) {
        int64_t step = record_i64(r, "step", -1);
        if (r->source != SOURCE_JOB || !record_is(r, "checkpoint-commit") ||
            (pid >= 0 && r->pid != pid))
            continue;
        gap = last < 0 ? 0 : wider(gap, last, step);
        pid = r->pid;
        last = step;
    }
    return saved - last <= 1 && last - saved <= 1 ? gap : 0;
}

/* How far what lies on disk has come by its end, and in which steps. */
static void take_saved(const struct history *h, struct control *ret) {
    const struct record *look = history_newest(h, SOURCE_DISK, "checkpoints");
    int64_t before = -1, gap = 0;
    ret->saved = -1;
    json_each(c, look ? record_get(look, "complete") : NULL) {
        int64_t step = json_get_i64(c, "step", -1);
        gap = before < 0 ? 0 : wider(gap, before, step);
        before = step;
        ret->saved = step > ret->saved ? step : ret->saved;
    }
    int64_t told = ret->saved < 0 ? 0 : told_gap(h, ret->saved);
    ret->saved_gap = told ? told : gap;
}

static void take_named(const struct round *last, struct control *ret) {
    ret->workers = last ? (int)last->n : 0;
    for (int i = 0; i < ret->workers; i++)
        ret->named += *last->workers[i]->model != 0;
}

/* How long it took to begin and to train, on the clock that triggers count by: where steps are read
 * from the output a disturbed run is steady with the first of them, this one with its workers. */
static void take_times(const struct history *h, const struct rounds *rs, struct control *ret) {
    const struct record *steady = history_newest(h, SOURCE_HARNESS, "steady");
    int64_t begin = h->n ? h->records[0]->t_ns : 0, end = 0, step = 0, last = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        end = rs->workers[i]->exit_ns > end ? rs->workers[i]->exit_ns : end;
    take_steps(h, ret, &step, &last);
    if (!steady)
        return;
    int64_t from = step && !ret->told && step > steady->t_ns ? step : steady->t_ns;
    ret->start_ns = from - begin;
    ret->train_ns = end > from ? end - from : 0;
    ret->steps_ns = last > from ? last - from : 0;
}

void control_take(const struct history *h, const struct rounds *rs, struct control *ret) {
    const struct round *last = rounds_last_complete(rs);
    const struct worker *w = last ? round_rank(last, 0) : NULL;
    for (size_t i = 0; w && !*w->model && i < last->n; i++) /* another may print for all */
        if (*last->workers[i]->model)
            w = last->workers[i];
    *ret = (struct control){.step_ns = w ? median_step_ns(h, w->pid) : 0,
                            .pace_ns = goodput_pace_ns(rs),
                            .first_step = -1,
                            .last_step = -1};
    str_copy(ret->model, sizeof(ret->model), w ? w->model : "");
    take_times(h, rs, ret);
    take_saves(h, ret);
    take_commits(h, ret);
    take_loss(h, ret);
    ret->kept = take_kept(h);
    take_saved(h, ret);
    take_named(last, ret);
    history_each(r, h) if (w && r->pid == w->pid && record_is(r, "done"))
        str_copy(ret->label, sizeof(ret->label), json_get_string(r->fields, "label", ""));
}

int control_keep(const char *dir, const struct control *c, struct err *err) {
    struct buf text = {0};
    struct folder cache = FOLDER_NONE;
    char path[PATH_MAX];
    const char *name = "";
    put_control(&text, c);
    snprintf(path, sizeof(path), "%s/control.json", dir);
    int r = cache_enter(path, true, &cache, &name, err);
    if (r == 0)
        r = folder_write_synced(&cache, name, text.data, text.len, err);
    folder_close(&cache);
    buf_fini(&text);
    return r;
}

void control_forget(const char *dir) {
    struct folder cache = FOLDER_NONE;
    if (cache_enter(dir, false, &cache, NULL, NULL) != 0)
        return;
    folder_unlink(&cache, "control.json");
    folder_close(&cache);
}
