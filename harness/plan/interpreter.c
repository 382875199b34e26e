/* The launcher as this host has it, and the Python it runs on. */
#include "harness/plan/interpreter.h"

#include "base/str.h"
#include "harness/plan/answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Does not import torch, which takes seconds: its version lies in a file. */
static const char question[] =
    "import re,sys\n"
    "from importlib.util import find_spec\n"
    "s=find_spec('torch'); v='-'\n"
    "try: v=re.search(\"(?m)^__version__[^=]*=[^'\\\"]*['\\\"]([^'\\\"]+)\","
    "open(s.submodule_search_locations[0]+'/version.py').read()).group(1)\n"
    "except Exception: v='?' if s else '-'\n"
    "print('python %d.%d torch %s etcd %d'%(sys.version_info[0],sys.version_info[1],v,"
    "bool(find_spec('etcd'))))\n";

bool interpreter_is_python(const char *word) {
    return str_starts(str_base(word), "python") || str_starts(str_base(word), "pypy");
}

/* "#!/venv/bin/python3 -s", "#!/usr/bin/env python3", and what pip writes where the path is too
 * long for the kernel: "#!/bin/sh", then '''exec' "/long/python3" "$0" "$@". */
const char *interpreter_of_head(struct arena *a, const char *head) {
    if (!str_starts(head, "#!"))
        return NULL;
    size_t line = strcspn(head, "\n");
    const char *exec = head[line] ? head + line + 1 : "";
    if (str_starts(exec, "'''exec' ")) {
        exec += strlen("'''exec' ");
        const char *end = *exec == '"' ? "\"\n" : " \n";
        exec += *exec == '"';
        return arena_strndup(a, exec, strcspn(exec, end));
    }
    char **words = str_split(a, arena_strndup(a, head + 2, line - 2), ' ', NULL);
    while (*words && !interpreter_is_python(*words))
        words++;
    return *words;
}

static const char *python_of_file(struct plan *p, const char *file) {
    char head[4096];
    int fd = plan_open(p, file);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof(head) - 1) : 0;
    if (fd >= 0)
        close(fd);
    head[n > 0 ? n : 0] = '\0';
    return interpreter_of_head(&p->arena, head);
}

/* ---- asking it ---- */

bool interpreter_say(const struct plan *p, const char *path, const char *script, char *ret,
                     size_t size) {
    const char *const argv[] = {path, "-c", script, NULL};
    return answer_read(p, argv, ret, size);
}

void interpreter_ask(const struct plan *p, const char *path, struct python *ret) {
    char answer[256], version[16], torch[48];
    int etcd;
    *ret = (struct python){.path = path};
    if (!interpreter_say(p, path, question, answer, sizeof(answer)) ||
        sscanf(answer, "python %15s torch %47s etcd %d", version, torch, &etcd) != 3)
        return;
    ret->etcd = etcd;
    str_copy(ret->version, sizeof(ret->version), version);
    if (!str_eq(torch, "-"))
        str_copy(ret->torch, sizeof(ret->torch), torch);
}

/* ---- what follows from it ---- */

static bool says(const char *const *args, const char *letter, const char *word) {
    for (; args && *args; args++)
        if (str_starts(*args, letter) || str_starts(*args, word))
            return true;
    return false;
}

/* Python 3.11 iterates flags otherwise than torch 1.x expects: its defaults, 0, and 3 end in an
 * AttributeError, 1 and 2 work. */
static void find_quirks(struct plan *p) {
    const struct job_spec *job = &p->scenario->job;
    int minor = 0;
    if (!str_starts(p->python.torch, "1.") || sscanf(p->python.version, "3.%d", &minor) != 1 ||
        minor < 11)
        return;
    const char **v = arena_array(&p->arena, const char *, 5);
    size_t n = 0;
    if (!says(job->launcher_args, "-r", "--redirects")) {
        v[n++] = "--redirects";
        v[n++] = "1";
    }
    if (!says(job->launcher_args, "-t", "--tee")) {
        v[n++] = "--tee";
        v[n++] = "1";
    }
    p->launcher_quirks = v;
    if (n)
        p->launcher_note = arena_printf(
            &p->arena,
            "torch %s does not parse its own defaults on Python %s, so torchrun is given %s %s%s%s",
            p->python.torch, p->python.version, v[0], v[1], n > 2 ? " " : "",
            n > 2 ? "--tee 1" : "");
}

static int lacks_torch(const struct plan *p, struct err *err) {
    return err_say(err, -ENOENT,
                   "launcher: %s (Python %s), which %s runs on, has no module torch; install "
                   "it there (apt install python3-torch, or pip install torch), or name another "
                   "launcher, for example --launcher '/usr/bin/python3 -m torch.distributed.run'",
                   p->python.path, p->python.version, p->launcher[0]);
}

static int lacks_etcd(const struct plan *p, struct err *err) {
    return err_say(err, -ENOENT,
                   "rdzv_backend: %s needs the Python module etcd, which %s (Python %s) has not; "
                   "install it there (apt install python3-etcd, or pip install python-etcd), or "
                   "write rdzv_backend: c10d",
                   p->backend, p->python.path, p->python.version);
}

/* torchrun is a small script around a module that may be there without it. */
static int find_words(struct plan *p, const char *path, struct err *err) {
    static const char *const module[] = {"python3", "-m", "torch.distributed.run", NULL};
    const struct job_spec *j = &p->scenario->job;
    p->launcher = j->launcher_argv;
    if (strchr(p->launcher[0], '{'))
        return 0; /* the worker itself, or a place that does not exist yet */
    if (plan_find_program(p, &p->arena, p->launcher[0], path))
        return 0;
    if (str_eq(p->launcher[0], "torchrun") && !p->launcher[1] &&
        plan_find_program(p, &p->arena, "python3", path)) {
        p->launcher = module;
        return 0;
    }
    return err_say(err, -ENOENT,
                   strchr(p->launcher[0], '/')
                       ? "launcher: there is no program %s that could be executed%s%s"
                       : "launcher: there is no program \"%s\" in PATH%s%s; install it, or name it "
                         "by its path",
                   p->launcher[0], p->rootfs ? " in the root file system of the nodes, " : "",
                   p->rootfs ? p->rootfs : "");
}

static const char *find_python(struct plan *p, const char *path) {
    for (const char *const *w = p->launcher; *w; w++)
        if (interpreter_is_python(*w))
            return *w;
    const char *file = plan_find_program(p, &p->arena, p->launcher[0], path);
    return file ? python_of_file(p, file) : NULL;
}

int interpreter_find(struct plan *p, struct err *err) {
    const struct job_spec *j = &p->scenario->job;
    const char *path = plan_path(j);
    if (p->launcher || !j->launcher_argv || str_eq(j->launcher_argv[0], "rankrun"))
        return 0;
    int r = find_words(p, path, err);
    if (r < 0)
        p->launcher = NULL;
    else if (str_eq(j->launcher, "torchrun"))
        p->python.path = find_python(p, path);
    return r;
}

int plan_find_launcher(struct plan *p, struct err *err) {
    int r = interpreter_find(p, err);
    if (r < 0 || !p->python.path || p->python.asked || p->untrusted)
        return r; /* without a Python: whatever it is, it takes torchrun's options */
    interpreter_ask(p, p->python.path, &p->python);
    p->python.asked = true;
    if (*p->python.version && !*p->python.torch)
        return lacks_torch(p, err);
    if (*p->python.version && !p->python.etcd && str_starts(p->backend ? p->backend : "", "etcd"))
        return lacks_etcd(p, err);
    find_quirks(p);
    return 0;
}
