/* rankquake clean: what a killed harness has left. Its processes, networks and mounts the kernel
 * takes away by itself; files it does not. */
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/sys/printing.h"
#include "base/sys/process.h"
#include "harness/cluster/mark.h"
#include "harness/cluster/strays.h"
#include "harness/run/control.h"
#include "harness/run/presence.h"
#include "harness/trial/trials.h"
#include "harness/verbs.h"
#include "harness/verbs/crashpoints/memory.h"
#include "harness/verbs/hosts_left.h"
#include "harness/verbs/wanted_hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t END_WAIT_NS = 5000000000;
static const int64_t RUN_WAIT_NS =
    30000000000; /* for a run whose doctor is dead to write all it has */

enum { DEPTH_MAX = 4 }; /* runs/compare-.../CELL/RUN */
/* Whoever still writes there makes one file more between our last look and the rmdir, not for ever. */
enum { REMOVALS_MAX = 20 };

struct cleaning {
    bool dry, kept;
    size_t done, failed;
};

static void failed(struct cleaning *c, const struct err *err) {
    fprintf(stderr, "rankquake clean: %s\n", err->msg);
    c->failed++;
}

static void remove_from(struct cleaning *c, const struct folder *f, const char *name,
                        const char *why) {
    struct err err;
    int r = 0;
    for (int i = 0; !c->dry && i < REMOVALS_MAX; i++) {
        r = folder_remove(f, name, &err);
        if (r != -ENOTEMPTY)
            break;
    }
    if (r) {
        failed(c, &err);
        return;
    }
    printing_line(stdout, "%s %s/%s, %s", c->dry ? "would remove" : "removed", f->path, name, why);
    c->done++;
}

/* ---- processes ---- */

static void end_process(struct cleaning *c, const struct process *p, const char *what) {
    struct err err;
    if (c->dry) {
        printing_line(stdout, "would end process %d, %s", (int)p->pid, what);
        c->done++;
        return;
    }
    int r = process_signal(p, SIGKILL);
    if (r == 0)
        r = process_wait_end(p, END_WAIT_NS);
    if (r && r != -ESRCH) {
        err_set(&err, r, "end process %d, %s", (int)p->pid, what);
        failed(c, &err);
        return;
    }
    printing_line(stdout, "ended process %d, %s", (int)p->pid, what);
    c->done++;
}

static bool same_program(const struct stat *own, const char *pid) {
    char path[300];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%s/exe", pid);
    return stat(path, &st) == 0 && st.st_dev == own->st_dev && st.st_ino == own->st_ino;
}

/* Of a process of this very program: the part of a run that it is, NULL: none. */
static const char *part_of_run(const char *pid) {
    static const char node[] = "rankquake\0node", wire[] = "rankquake\0wire";
    char path[300];
    BUF_FINI struct buf words = {0};
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    const char *part = NULL;
    if (file_read(path, 1 << 20, &words, NULL) == 0 && words.len > sizeof(node)) {
        if (memcmp(words.data, node, sizeof(node)) == 0)
            part = "a node without its harness";
        else if (memcmp(words.data, wire, sizeof(wire)) == 0)
            part = "a wire without its harness";
    }
    return part;
}

/* They are the harness's children and die with it; one that is seen here should not be. Its own
 * mark says whose it was. */
static void end_strays(struct cleaning *c) {
    struct stat own;
    char mark[MARK_SIZE];
    DIR *d = opendir("/proc");
    bool known = stat("/proc/self/exe", &own) == 0;
    for (struct dirent *e; d && known && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !same_program(&own, e->d_name))
            continue;
        struct process p;
        if (process_open((pid_t)atoi(e->d_name), &p, NULL) != 0)
            continue;
        const char *part = part_of_run(e->d_name);
        if (part && mark_of(p.pid, mark) && mark_is_orphaned(mark))
            end_process(c, &p, part);
        process_close(&p);
    }
    if (d)
        closedir(d);
}

/* ---- run directories ---- */

static const char *name_of(const struct presence *p, pid_t pid) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].pid == pid && presence_lives(p, &p->nodes[i]))
            return p->nodes[i].name;
    return "left by a node";
}

/* What the run's own harness would have ended. Which processes these are they say themselves: the
 * file may name any. */
static void end_left_behind(struct cleaning *c, const struct presence *p) {
    struct process *all;
    if (!presence_is_orphaned(p))
        return;
    size_t n = strays_of(p->mark, &all);
    for (size_t i = 0; i < n; i++)
        end_process(c, &all[i], name_of(p, all[i].pid));
    strays_free(all, n);
}

static void clean_scratch(struct cleaning *c, const struct folder *run, const struct presence *p) {
    char why[100];
    if (p->keep && !c->kept && folder_has(run, "scratch")) {
        printing_line(stdout, "left alone: %s/scratch, kept by --keep; clean --kept removes it",
                      run->path);
        return;
    }
    snprintf(why, sizeof(why), p->keep ? "kept by --keep" : "left by harness %d, which is dead",
             (int)p->harness.pid);
    if (folder_has(run, "scratch"))
        remove_from(c, run, "scratch", why);
    if (!c->dry && !folder_has(run, "scratch"))
        presence_remove(run);
}

/* What a killed `crashpoints` had in memory. */
static void clean_memory(struct cleaning *c, const struct presence *p) {
    char path[CRASH_MEMORY_PATH_MAX];
    struct err err;
    if (!crash_memory_is_left(p))
        return;
    crash_memory_path(p, path);
    /* Who is above the job outlives the harness by a moment, and removes the same. */
    int r = c->dry ? 0 : -EAGAIN;
    for (int i = 0; r && i < REMOVALS_MAX; i++)
        r = crash_memory_remove(p, &err);
    if (r) {
        failed(c, &err);
        return;
    }
    printing_line(stdout, "%s %s, left by harness %d, which is dead",
                  c->dry ? "would remove" : "removed", path, (int)p->harness.pid);
    c->done++;
}

static void clean_run(struct cleaning *c, const struct folder *run) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    struct err err = {0};
    int r = presence_read(run, &a, &p, &err);
    enum presence_state state = r == 0 ? presence_state(&p) : PRESENCE_OVER;
    if (r && r != -ENOENT) {
        failed(c, &err);
    } else if (r == 0 && state == PRESENCE_LIVE) {
        printing_line(stdout, "left alone: %s, its harness %d is at work", run->path,
                      (int)p.harness.pid);
    } else if (r == 0 && state == PRESENCE_ELSEWHERE) {
        printing_line(stdout, "left alone: %s, which belongs to another container", run->path);
    } else if (r == 0) {
        end_left_behind(c, &p);
        clean_memory(c, &p);
        clean_scratch(c, run, &p);
    }
}

static void clean_with_control(struct cleaning *c, const struct folder *run) {
    struct folder control;
    clean_run(c, run);
    if (folder_has_directory(run, "control") && folder_enter(&control, run, "control", NULL) == 0) {
        clean_run(c, &control);
        folder_close(&control);
    }
}

static int is_run(const struct dirent *e) {
    return folder_is_shown(e) && !str_eq(e->d_name, "control");
}

/* A folder of runs, or one run; a comparison in it is a folder of such folders. What is a link in
 * there is passed over: where it leads to may be anybody's. */
static void clean_folder(struct cleaning *c, const struct folder *f, int depth, bool compared) {
    TEXTS_FINI struct texts names = {0};
    struct folder run;
    clean_with_control(c, f);
    if (!folder_has(f, "scenario.yaml"))
        folder_list(f, ".", is_run, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        bool folders = compared || str_starts(names.v[i], "compare-");
        if (folder_has_directory(f, names.v[i]) && folder_enter(&run, f, names.v[i], NULL) == 0) {
            if (folders && depth < DEPTH_MAX)
                clean_folder(c, &run, depth + 1, true);
            else
                clean_with_control(c, &run);
            folder_close(&run);
        }
    }
}

static void clean_path(struct cleaning *c, const char *path, bool compared) {
    struct folder f;
    struct err err;
    if (folder_open(&f, path, &err) < 0) {
        failed(c, &err);
        return;
    }
    clean_folder(c, &f, 0, compared);
    folder_close(&f);
}

/* ---- what a killed doctor has tried ---- */

static bool names_folder(const char *pid, const char *folder) {
    char path[300];
    BUF_FINI struct buf words = {0};
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    if (file_read(path, 1 << 20, &words, NULL) != 0)
        return false;
    const char *text = buf_str(&words), *end = text + words.len;
    for (; text < end; text += strlen(text) + 1)
        if (plan_is_below(text, folder))
            return true;
    return false;
}

/* Its runs end when their doctor has died, and write their reports then. False: one goes on. */
static bool wait_for_runs(const char *folder) {
    struct stat own;
    DIR *d = opendir("/proc");
    bool known = stat("/proc/self/exe", &own) == 0, ended = true;
    for (struct dirent *e; d && known && ended && (e = readdir(d));) {
        struct process p;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == (int)getpid() ||
            !same_program(&own, e->d_name) || !names_folder(e->d_name, folder) ||
            process_open((pid_t)atoi(e->d_name), &p, NULL) != 0)
            continue;
        ended = process_wait_end(&p, RUN_WAIT_NS) == 0;
        process_close(&p);
    }
    if (d)
        closedir(d);
    return ended;
}

static int is_tried(const struct dirent *e) {
    return str_starts(e->d_name, TRIALS_FOLDER);
}

/* One of ours whose doctor is dead; what it was told to keep has no note any more. */
static void clean_tried(struct cleaning *c, const struct folder *place, const char *name) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    struct stat st;
    struct folder f;
    char why[100];
    if (fstatat(place->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid() || folder_enter(&f, place, name, NULL) != 0)
        return;
    bool over = presence_read(&f, &a, &p, NULL) == 0 && presence_state(&p) == PRESENCE_OVER;
    if (over && !c->dry && !wait_for_runs(f.path)) {
        printing_line(stdout, "left alone: %s, a run of which is at work", f.path);
    } else if (over) {
        clean_folder(c, &f, 0, false);
        snprintf(why, sizeof(why), "left by doctor %d, which is dead", (int)p.harness.pid);
        remove_from(c, place, name, why);
    }
    folder_close(&f);
}

static void clean_all_tried(struct cleaning *c) {
    struct folder place;
    TEXTS_FINI struct texts names = {0};
    if (folder_open(&place, trials_place(), NULL) != 0)
        return;
    folder_list(&place, ".", is_tried, &names, NULL);
    for (size_t i = 0; i < names.n; i++)
        clean_tried(c, &place, names.v[i]);
    folder_close(&place);
}

/* ---- the cache of control runs ---- */

/* Who writes a file of the cache under the name that it has until it is done (folder.h). */
static pid_t writer_of(const char *name) {
    int pid = 0;
    return str_ends(name, ".tmp") && sscanf(name, "control.json.%d.", &pid) == 1 ? pid : 0;
}

static int is_unfinished(const struct dirent *e) {
    pid_t writer = writer_of(e->d_name);
    return writer > 0 && kill(writer, 0) != 0 && errno == ESRCH;
}

static void clean_cached(struct cleaning *c, const struct folder *cached) {
    TEXTS_FINI struct texts names = {0};
    folder_list(cached, ".", is_unfinished, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        remove_from(c, cached, names.v[i], "which was never finished");
    }
}

static void clean_cache(struct cleaning *c) {
    char path[4096];
    struct folder cache, cached;
    TEXTS_FINI struct texts names = {0};
    if (control_dir("", path, sizeof(path), NULL) != 0 ||
        cache_enter(path, false, &cache, NULL, NULL) != 0)
        return;
    folder_list(&cache, ".", folder_is_shown, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        if (folder_enter(&cached, &cache, names.v[i], NULL) == 0) {
            clean_cached(c, &cached);
            folder_close(&cached);
        }
    }
    folder_close(&cache);
}

/* ---- the verb ---- */

static int clean_all(const struct arguments *a) {
    struct cleaning c = {.dry = arguments_value(a, "--dry-run"),
                         .kept = arguments_value(a, "--kept")};
    struct stat st;
    if (wanted_hosts_asked(a))
        return a->files_n ? verb_usage_error(a->verb, "name folders, or other hosts, and not both")
                          : hosts_left(a, c.dry ? "look" : "clean", NULL);
    for (size_t i = 0; i < a->files_n; i++)
        if (stat(a->files[i], &st) < 0 || !S_ISDIR(st.st_mode))
            return verb_usage_error(a->verb, "there is no folder %s", a->files[i]);
    end_strays(&c);
    for (size_t i = 0; i < a->files_n; i++)
        clean_path(&c, a->files[i], strstr(a->files[i], "/compare-") != NULL);
    if (!a->files_n && file_exists("runs"))
        clean_path(&c, "runs", false);
    if (!a->files_n)
        clean_all_tried(&c);
    clean_cache(&c);
    if (!c.done && !c.failed)
        puts("nothing to clean");
    return c.failed ? EXIT_LEFTOVERS : EXIT_PASS;
}

const struct verb verb_clean = {
    .name = "clean",
    .usage = "clean [DIR...] [--dry-run] [--kept] | clean --hosts A,B,.. [--dry-run]",
    .summary = "undo what a killed harness left behind; a run that goes on is never touched",
    .example = "clean --dry-run",
    .operands = "DIR",
    .options =
        (const struct verb_option[]){
            {"--dry-run", NULL, "print what would be removed, and remove nothing"},
            {"--kept", NULL, "also remove what run --keep has kept"},
            HOSTS_LEFT_OPTIONS,
            {0}},
    .run = clean_all,
};
