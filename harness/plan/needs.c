/* What a job of Python's cannot do without, asked of the interpreter that will run it. */
#include "base/str.h"
#include "harness/plan/interpreter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The words that start a launcher may name it; else what scripts are given to, or the job's own. */
const char *needs_python(const struct plan *p) {
    const struct job_spec *j = &p->scenario->job;
    for (const char *const *w = j->launcher_argv; w && *w; w++)
        if (interpreter_is_python(*w))
            return *w;
    if (str_ends(j->run[0], ".py") || str_eq(j->run[0], "-m"))
        return plan_python(j, "python3");
    return interpreter_is_python(j->run[0]) ? j->run[0] : NULL;
}

static bool is_module_name(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.", *c))
            return false;
    return *name;
}

/* What the script has printed: the last line, as libraries print what they like before. */
static const char *last_line(char *answer) {
    size_t n = strlen(answer);
    while (n > 0 && answer[n - 1] == '\n')
        answer[--n] = '\0';
    const char *before = strrchr(answer, '\n');
    return before ? before + 1 : answer;
}

/* Does not import it, which may take seconds, but for what it is a part of: why that cannot be
 * imported is told. */
static int check(const struct plan *p, const char *python, const char *module, struct err *err) {
    char script[400], answer[2048];
    if (!is_module_name(module) || strlen(module) > 100)
        return err_say(err, -ENOENT, "job.needs: \"%s\" is no name of a module", module);
    snprintf(script, sizeof(script),
             "from importlib.util import find_spec\n"
             "try: print('yes' if find_spec('%s') else 'no')\n"
             "except ModuleNotFoundError: print('no')\n"
             "except Exception as e: print('fails', str(e).split(chr(10))[0])\n",
             module);
    const char *said =
        interpreter_say(p, python, script, answer, sizeof(answer)) ? last_line(answer) : "";
    if (str_starts(said, "yes"))
        return 0;
    const char *where = p->rootfs ? " in the root file system of the nodes, " : "",
               *tree = p->rootfs ? p->rootfs : "";
    if (str_starts(said, "fails "))
        return err_say(err, -ENOTSUP,
                       "job.needs: %s%s%s cannot import %s: %s; a newer version of it may", python,
                       where, tree, module, said + strlen("fails "));
    return err_say(err, -ENOTSUP,
                   "job.needs: %s%s%s has no module %s; install it there, as in apt install "
                   "python3-%.*s",
                   python, where, tree, module, (int)strcspn(module, "."), module);
}

int needs_check(const struct plan *p, struct err *err) {
    const struct job_spec *j = &p->scenario->job;
    const char *python = p->untrusted ? NULL : needs_python(p);
    int r = 0;
    for (size_t i = 0; python && i < j->needs_n && r == 0; i++)
        r = check(p, python, j->needs[i], err);
    return r;
}
