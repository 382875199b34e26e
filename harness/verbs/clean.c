/* rankquake clean: what a killed harness has left. Its processes, networks and mounts the kernel
 * takes away by itself; files it does not. */
#include "agent/base/str.h"
#include "agent/sys/file.h"
#include "agent/sys/printing.h"
#include "agent/sys/process.h"
#include "harness/cluster/strays.h"
#include "harness/run/control.h"
#include "harness/run/presence.h"
#include "harness/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t END_WAIT_NS = 5000000000;

struct cleaning {
    bool dry, kept;
    size_t done, failed;
};

static void failed(struct cleaning *c, const struct err *err) {
    fprintf(stderr, "rankquake clean: %s\n", err->msg);
    c->failed++;
}

static void remove_path(struct cleaning *c, const char *path, const char *why) {
    struct err err;
    if (!c->dry && file_remove_tree(path, &err) != 0) {
        failed(c, &err);
        return;
    }
    printing_line(stdout, "%s %s, %s", c->dry ? "would remove" : "removed", path, why);
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

static void end_node(struct cleaning *c, pid_t pid, uint64_t ticks, const char *name) {
    struct process p;
    uint64_t now;
    if (process_open(pid, &p, NULL) != 0)
        return;
    if (process_start_ticks(pid, &now) == 0 && now == ticks)
        end_process(c, &p, name);
    process_close(&p);
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
    struct buf words = {0};
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    const char *part = NULL;
    if (file_read(path, 1 << 20, &words, NULL) == 0 && words.len > sizeof(node)) {
        if (memcmp(words.data, node, sizeof(node)) == 0)
            part = "a node without its harness";
        else if (memcmp(words.data, wire, sizeof(wire)) == 0)
            part = "a wire without its harness";
    }
    buf_fini(&words);
    return part;
}

static bool has_harness(const struct stat *own, const char *pid) {
    char path[300], parent[16] = "";
    struct buf status = {0};
    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    file_read(path, 1 << 20, &status, NULL);
    const char *line = strstr(buf_str(&status), "\nPPid:\t");
    if (line)
        snprintf(parent, sizeof(parent), "%d", atoi(line + strlen("\nPPid:\t")));
    buf_fini(&status);
    return *parent && same_program(own, parent);
}

/* They are the harness's children and die with it; one that is seen here should not be. */
static void end_strays(struct cleaning *c) {
    struct stat own;
    DIR *d = opendir("/proc");
    bool known = stat("/proc/self/exe", &own) == 0;
    for (struct dirent *e; d && known && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !same_program(&own, e->d_name))
            continue;
        struct process p;
        if (process_open((pid_t)atoi(e->d_name), &p, NULL) != 0)
            continue;
        const char *part = part_of_run(e->d_name);
        if (part && !has_harness(&own, e->d_name))
            end_process(c, &p, part);
        process_close(&p);
    }
    if (d)
        closedir(d);
}

/* ---- run directories ---- */

/* Where nodes were processes of this host, a helper that was killed itself has left its own. */
static void end_left_behind(struct cleaning *c, const char *dir) {
    char scratch[PATH_MAX], *real;
    snprintf(scratch, sizeof(scratch), "%s/scratch", dir);
    if (!(real = realpath(scratch, NULL)))
        return;
    struct process *all;
    size_t n = strays_of(real, &all);
    for (size_t i = 0; i < n; i++)
        end_process(c, &all[i], "left by a node");
    strays_free(all, n);
    free(real);
}

static void clean_scratch(struct cleaning *c, const char *dir, const struct presence *p) {
    char scratch[4300], why[100];
    snprintf(scratch, sizeof(scratch), "%s/scratch", dir);
    if (p->keep && !c->kept && file_exists(scratch)) {
        printing_line(stdout, "left alone: %s, kept by --keep; clean --kept removes it", scratch);
        return;
    }
    snprintf(why, sizeof(why), p->keep ? "kept by --keep" : "left by harness %d, which is dead",
             (int)p->harness.pid);
    if (file_exists(scratch))
        remove_path(c, scratch, why);
    if (!c->dry && !file_exists(scratch))
        presence_remove(dir);
}

static void clean_run(struct cleaning *c, const char *dir) {
    struct arena a = {0};
    struct presence p;
    struct err err = {0};
    int r = presence_read(dir, &a, &p, &err);
    enum presence_state state = r == 0 ? presence_state(&p) : PRESENCE_OVER;
    if (r && r != -ENOENT && r != -ENOTDIR) {
        failed(c, &err);
    } else if (r == 0 && state == PRESENCE_LIVE) {
        printing_line(stdout, "left alone: %s, its harness %d is at work", dir, (int)p.harness.pid);
    } else if (r == 0 && state == PRESENCE_ELSEWHERE) {
        printing_line(stdout, "left alone: %s, which belongs to another container", dir);
    } else if (r == 0) {
        for (size_t i = 0; i < p.nodes_n; i++)
            if (presence_lives(&p, &p.nodes[i]))
                end_node(c, p.nodes[i].pid, p.nodes[i].start_ticks, p.nodes[i].name);
        end_left_behind(c, dir);
        clean_scratch(c, dir, &p);
    }
    arena_fini(&a);
}

static void clean_with_control(struct cleaning *c, const char *dir) {
    char control[4300];
    snprintf(control, sizeof(control), "%s/control", dir);
    clean_run(c, dir);
    clean_run(c, control);
}

/* A folder of runs, or one run; a comparison in it is a folder of such folders. */
static void clean_folder(struct cleaning *c, const char *folder, bool compared) {
    char dir[4200];
    snprintf(dir, sizeof(dir), "%.3900s/scenario.yaml", folder);
    bool run = file_exists(dir);
    clean_with_control(c, folder);
    DIR *d = run ? NULL : opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || str_eq(e->d_name, "control"))
            continue;
        snprintf(dir, sizeof(dir), "%.3900s/%s", folder, e->d_name);
        if (compared || str_starts(e->d_name, "compare-"))
            clean_folder(c, dir, true);
        else
            clean_with_control(c, dir);
    }
    if (d)
        closedir(d);
}

/* ---- the cache of control runs ---- */

static int64_t writer_of(const char *name) {
    static const char begin[] = "control.json.";
    int64_t pid = 0;
    char digits[32];
    if (!str_starts(name, begin) || !str_ends(name, ".tmp"))
        return 0;
    snprintf(digits, sizeof(digits), "%.*s", (int)(strlen(name) - strlen(begin) - strlen(".tmp")),
             name + strlen(begin));
    return str_to_i64(digits, 1, INT32_MAX, &pid) ? pid : 0;
}

static void clean_cached(struct cleaning *c, const char *dir) {
    char path[8500];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        int64_t pid = writer_of(e->d_name);
        if (!pid || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        remove_path(c, path, "which was never finished");
    }
    if (d)
        closedir(d);
}

static void clean_cache(struct cleaning *c) {
    char folder[4096], dir[4400];
    if (control_dir("", folder, sizeof(folder), NULL) != 0)
        return;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(dir, sizeof(dir), "%s%s", folder, e->d_name);
        clean_cached(c, dir);
    }
    if (d)
        closedir(d);
}

/* ---- the verb ---- */

static int clean_all(const struct arguments *a) {
    struct cleaning c = {.dry = arguments_value(a, "--dry-run"),
                         .kept = arguments_value(a, "--kept")};
    struct stat st;
    for (size_t i = 0; i < a->files_n; i++)
        if (stat(a->files[i], &st) < 0 || !S_ISDIR(st.st_mode))
            return verb_usage_error(a->verb, "there is no folder %s", a->files[i]);
    end_strays(&c);
    for (size_t i = 0; i < a->files_n; i++)
        clean_folder(&c, a->files[i], strstr(a->files[i], "/compare-") != NULL);
    if (!a->files_n)
        clean_folder(&c, "runs", false);
    clean_cache(&c);
    if (!c.done && !c.failed)
        puts("nothing to clean");
    return c.failed ? EXIT_LEFTOVERS : EXIT_PASS;
}

static int clean(int argc, char **argv) {
    struct arguments a;
    int code = arguments_read(&a, &verb_clean, argc, argv);
    if (code)
        return code;
    code = clean_all(&a);
    arguments_fini(&a);
    return code;
}

const struct verb verb_clean = {
    .name = "clean",
    .usage = "clean [DIR...] [--dry-run] [--kept]",
    .summary = "undo what a killed harness left behind; a run that goes on is never touched",
    .example = "clean --dry-run",
    .options =
        (const struct verb_option[]){
            {"--dry-run", NULL, "say what would be removed, and remove nothing"},
            {"--kept", NULL, "remove what run --keep has kept, too"},
            {0}},
    .main = clean,
};
