#include "agent/workers/command.h"

#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Whether execvp would find it. */
static bool is_in_path(const char *name) {
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    for (const char *p = path ? path : "/usr/bin:/bin"; p;
         p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
        int n = (int)strcspn(p, ":");
        if (snprintf(file, sizeof(file), "%.*s/%s", n ? n : 1, n ? p : ".", name) < PATH_MAX &&
            is_program(file))
            return true;
    }
    return false;
}

static bool runs_by_itself(const struct worker_command *c) {
    const char *program = c->words[0];
    if (c->no_python || c->module || c->run_path || str_ends(program, ".py"))
        return c->no_python;
    return strchr(program, '/') ? is_program(program) : is_in_path(program);
}

/* The length of the identifier at s, as Python's string.Template reads one. */
static size_t identifier(const char *s) {
    size_t n = 0;
    while (s[n] == '_' || isalpha((unsigned char)s[n]) || (n > 0 && isdigit((unsigned char)s[n])))
        n++;
    return n;
}

/* How much of s, which begins with $, is our variable; 0: nothing. */
static size_t variable(const char *s) {
    static const char name[] = "local_rank";
    const size_t len = sizeof(name) - 1;
    bool braced = s[1] == '{';
    const char *at = s + 1 + braced;
    if (identifier(at) != len || memcmp(at, name, len) != 0 || (braced && at[len] != '}'))
        return 0;
    return 1 + len + 2 * braced;
}

static char *substitute(const char *s, int local_rank, struct arena *a) {
    if (!strchr(s, '$'))
        return arena_strdup(a, s);
    BUF_FINI struct buf b = {0};
    while (*s) {
        size_t n = *s == '$' ? variable(s) : 0;
        if (n)
            buf_printf(&b, "%d", local_rank);
        else
            buf_putc(&b, *s);
        s += n ? n : s[0] == '$' && s[1] == '$' ? 2 : 1;
    }
    return arena_strdup(a, buf_str(&b));
}

/* A script that looks at how it was started finds itself as with torchrun: __main__, its own name
 * as argv[0]. */
static const char by_path[] = "import runpy, sys; del sys.argv[0]; "
                              "runpy.run_path(sys.argv[0], run_name='__main__')";

char **command_make(const struct worker_command *c, int local_rank, struct arena *a) {
    const char *python = getenv("PYTHON_EXEC"), *before = getenv("RANKRUN_BEFORE_WORKER");
    size_t n = 0, k = 0;
    while (c->words[n])
        n++;
    char **argv = arena_array(a, char *, n + 6);
    bool bare = runs_by_itself(c);
    if (before && before[0])
        argv[k++] = arena_strdup(a, before);
    if (!bare) {
        argv[k++] = arena_strdup(a, python && python[0] ? python : "python3");
        argv[k++] = arena_strdup(a, "-u");
        if (c->module)
            argv[k++] = arena_strdup(a, "-m");
        if (c->run_path) {
            argv[k++] = arena_strdup(a, "-c");
            argv[k++] = arena_strdup(a, by_path);
        }
    }
    for (size_t i = 0; i < n; i++)
        argv[k++] =
            i == 0 && bare ? arena_strdup(a, c->words[0]) : substitute(c->words[i], local_rank, a);
    return argv;
}
