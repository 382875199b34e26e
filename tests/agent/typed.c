#include "tests/agent/typed.h"

#include "agent/hosts/srun.h"
#include "agent/store/token.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "tests/agent/options_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VARIABLES_MAX = 16, DRAWN_FIRST = 0x1000, PROCESSORS = 6 };

static struct arena arena, usual_arena;
static struct options made;
static struct buf seen;      /* what was asked of the host */
static struct buf last_page; /* of help, or what it was */
static uint64_t drawn;

/* ---- the host ---- */

static const struct {
    const char *path, *text;
} files[] = {{"/v/token", "from-file\r\nmore\n"},
             {"/v/word", "hush"},
             {"/v/empty", "\n"},
             {"/v/hosts", "n1\nn2 slots=8\n"},
             {"/v/badhosts", "n1\nn2 slots=many\n"}};

static int read_file(const char *path, size_t max, struct buf *out, struct err *err) {
    const char *conf = getenv("CONF");
    buf_printf(&seen, "\n  reads %s, up to %zu bytes", path, max);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (str_eq(path, files[i].path))
            return buf_puts(out, files[i].text), 0;
    const char *of_conf = getenv("SLURM_CONF") ? getenv("SLURM_CONF") : "/etc/slurm/slurm.conf";
    if (!conf || !str_eq(path, of_conf))
        return err_set(err, -ENOENT, "open %s", path);
    for (; *conf; conf++)
        buf_putc(out, *conf == ';' ? '\n' : *conf == '~' ? ' ' : *conf);
    return 0;
}

/* The test's own records are files as ever. */
int __real_file_read(const char *path, size_t max, struct buf *out, struct err *err);
int __wrap_file_read(const char *path, size_t max, struct buf *out, struct err *err);
int __wrap_file_read(const char *path, size_t max, struct buf *out, struct err *err) {
    if (str_starts(path, "tests/"))
        return __real_file_read(path, max, out, err);
    return read_file(path, max, out, err);
}

int __wrap_file_read_plain(const char *path, size_t max, struct buf *out, struct err *err);
int __wrap_file_read_plain(const char *path, size_t max, struct buf *out, struct err *err) {
    return read_file(path, max, out, err);
}

uint64_t __wrap_random_u64(void);
uint64_t __wrap_random_u64(void) {
    return drawn++;
}

void __wrap_token_draw(char ret[TOKEN_DRAWN]);
void __wrap_token_draw(char ret[TOKEN_DRAWN]) {
    snprintf(ret, TOKEN_DRAWN, "drawn-%" PRIu64, drawn++);
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) {
    return name == _SC_NPROCESSORS_ONLN ? PROCESSORS : __real_sysconf(name);
}

const char *__wrap_host_name_full(struct arena *a);
const char *__wrap_host_name_full(struct arena *a) {
    const char *name = getenv("FULL_NAME");
    return name ? arena_strdup(a, name) : NULL;
}

enum srun_keeps __wrap_srun_find(const char *job);
enum srun_keeps __wrap_srun_find(const char *job) {
    buf_printf(&seen, "\n  looks for the srun of job %s", job ? job : "none");
    return str_eq(getenv("SRUN"), "ends") ? SRUN_ENDS : SRUN_UNKNOWN;
}

/* A folder with so many entries in place of the driver's. */
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path) {
    const char *said = getenv("GPUS");
    char place[] = "/tmp/typed_gpus_XXXXXX", entry[64];
    int n = said ? atoi(said) : 0;
    if (!str_eq(path, "/proc/driver/nvidia/gpus"))
        return __real_opendir(path);
    if (!said || !mkdtemp(place))
        return NULL;
    for (int i = 0; i < n; i++) {
        snprintf(entry, sizeof(entry), "%s/0000:%02x:00.0", place, i);
        mkdir(entry, 0700);
    }
    DIR *d = __real_opendir(place);
    setenv("GPUS_AT", place, 1);
    return d;
}

static void take_gpus_away(void) {
    const char *place = getenv("GPUS_AT"), *said = getenv("GPUS");
    char entry[64];
    for (int i = 0; place && i < atoi(said); i++) {
        snprintf(entry, sizeof(entry), "%s/0000:%02x:00.0", place, i);
        rmdir(entry);
    }
    if (place)
        rmdir(place);
    unsetenv("GPUS_AT");
}

/* ---- a line ---- */

static char *word_of(char *text) {
    if (str_eq(text, "''"))
        text[0] = '\0';
    for (char *p = text; *p; p++)
        *p = *p == '~' ? ' ' : *p;
    return text;
}

static int set_variables(char **words, char *names[VARIABLES_MAX]) {
    int n = 0;
    for (; words[n] && !str_eq(words[n], "rankrun") && n < VARIABLES_MAX; n++) {
        char *equals = strchr(words[n], '=');
        if (!equals)
            abort(); /* a line without "rankrun" */
        *equals = '\0';
        names[n] = words[n];
        setenv(names[n], word_of(equals + 1), 1);
    }
    return n;
}

static void put_texts(struct buf *out) {
    BUF_FINI struct buf page = {0};
    if (made.verb == OPTIONS_HELP) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);
        options_print_help(f);
        fclose(f);
        buf_put(&page, text, n);
        free(text);
    } else if (made.verb == OPTIONS_MANUAL) {
        options_put_manual(&page);
    } else if (made.verb == OPTIONS_SCRIPT) {
        options_put_script(&page, made.shell);
    } else if (made.verb == OPTIONS_WORDS) {
        options_put_words(&page, made.command);
    }
    if (page.len && str_eq(buf_str(&page), buf_str(&last_page))) {
        buf_puts(out, "\n  | the same as before");
        return;
    }
    if (page.len) {
        buf_clear(&last_page);
        buf_puts(&last_page, buf_str(&page));
    }
    for (char *rest = page.data, *line; rest && (line = strsep(&rest, "\n"));) {
        char *version = str_starts(line, ".TH ") ? strstr(line, "\"RankQuake ") : NULL;
        if (version)
            *version = '\0'; /* another with each release */
        if (line[0])
            buf_printf(out, "\n  | %s", line);
    }
}

/* What a line of its verb has that says nothing more. */
static const struct options_facts *usual_of(enum options_verb verb) {
    static const char *const line[] = {"rankrun a.py", "rankrun store",
                                       "rankrun status --rdzv-endpoint h", "rankrun outcome x", ""};
    static struct options_facts facts[5];
    int k = verb == OPTIONS_RUN || verb == OPTIONS_HOSTS ? 0
            : verb == OPTIONS_STORE                      ? 1
            : verb == OPTIONS_STATUS                     ? 2
            : verb == OPTIONS_OUTCOME                    ? 3
                                                         : 4;
    struct options o = {0};
    size_t n;
    if (!facts[k].n) {
        char **words = str_split(&usual_arena, line[k], ' ', &n);
        drawn = DRAWN_FIRST;
        if (k < 4 && options_read(&o, (int)n, words, &usual_arena, NULL) < 0)
            abort();
        options_facts_of(&o, &usual_arena, &facts[k]);
    }
    return &facts[k];
}

static void put_made(struct buf *out) {
    BUF_FINI struct buf others = {0};
    struct options_facts facts;
    options_facts_of(&made, &arena, &facts);
    options_facts_put(&others, &facts, usual_of(made.verb));
    buf_printf(out, "\n %s", others.len ? buf_str(&others) : " as usual");
    for (const char *const *n = made.notices; n && *n; n++)
        buf_printf(out, "\n  tells: %s", *n);
    put_texts(out);
}

void typed_answer(struct buf *out, const char *line) {
    struct err err = {0};
    size_t n;
    char *names[VARIABLES_MAX];
    usual_of(OPTIONS_RUN), usual_of(OPTIONS_STORE), usual_of(OPTIONS_STATUS),
        usual_of(OPTIONS_OUTCOME), usual_of(OPTIONS_HELP);
    arena_fini(&arena);
    char **words = str_split(&arena, line, ' ', &n);
    int variables = set_variables(words, names);
    for (size_t i = (size_t)variables; i < n; i++)
        word_of(words[i]);
    memset(&made, 0, sizeof(made));
    made.max_restarts = -77; /* not written where the line is refused */
    drawn = DRAWN_FIRST;
    buf_clear(&seen);
    int code = options_read(&made, (int)n - variables, words + variables, &arena, &err);
    if (code == 0 && (err.code || err.msg[0]))
        buf_printf(out, "\n  taken, and yet refused: %s", err.msg);
    if (code == 0)
        put_made(out);
    else
        buf_printf(out, "\n  refused with %d: %s%s", code, err.msg,
                   made.max_restarts == -77 && !made.command ? "" : ", and yet it has written");
    buf_puts(out, buf_str(&seen));
    take_gpus_away();
    for (int i = 0; i < variables; i++) {
        if (!getenv(names[i]))
            buf_printf(out, "\n  %s is taken", names[i]);
        unsetenv(names[i]);
    }
    buf_puts(out, "\n");
}

const struct options *typed_options(void) {
    return &made;
}

void typed_fini(void) {
    arena_fini(&arena);
    arena_fini(&usual_arena);
    buf_fini(&seen);
    buf_fini(&last_page);
}
