#include "harness/scenario/launcher.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

/* One word into b; the place after it, or NULL when a quotation does not end. */
static const char *take_word(const char *p, struct buf *b) {
    while (*p && !strchr(blanks, *p)) {
        char quote = *p == '\'' || *p == '"' ? *p++ : '\0';
        while (quote ? *p != quote : *p && !strchr(blanks, *p) && *p != '\'' && *p != '"') {
            if (*p == '\\' && quote != '\'' && p[1])
                p++;
            if (!*p)
                return NULL;
            buf_putc(b, *p++);
        }
        p += quote != '\0';
    }
    return p;
}

const char *const *launcher_words(struct arena *a, const char *text, size_t *ret_n) {
    const char **v = arena_array(a, const char *, strlen(text) / 2 + 2);
    BUF_FINI struct buf word = {0};
    size_t n = 0;
    text += strspn(text, blanks);
    while (text && *text) {
        buf_clear(&word);
        text = take_word(text, &word);
        v[n++] = arena_strdup(a, buf_str(&word));
        if (text)
            text += strspn(text, blanks);
    }
    *ret_n = n;
    return text ? v : NULL;
}

/* The word that is the program: what stands behind `env A=b`. */
static const char *program_of(const char *const *words) {
    if (str_eq(str_base(words[0]), "env"))
        while (words[1] && strchr(words[1], '='))
            words++;
    return str_base(str_eq(str_base(words[0]), "env") || strchr(words[0], '=')
                        ? words[1] ? words[1] : words[0]
                        : words[0]);
}

/* ---- a template ---- */

static bool is_template(const char *const *words) {
    for (; *words; words++)
        if (strchr(*words, '{'))
            return true;
    return false;
}

static const char *check_template(struct arena *a, const char *const *words) {
    static const char *const known[] = {"nodes", "node", "address", "endpoint", "worker", NULL};
    bool worker = false;
    for (; *words; words++) {
        for (const char *s = strchr(*words, '{'); s; s = strchr(s + 1, '{')) {
            size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_"), i = 0;
            if (!n || s[1 + n] != '}' || (s > *words && s[-1] == '$'))
                continue; /* ${NAME} is the shell's */
            const char *name = arena_strndup(a, s + 1, n);
            while (known[i] && !str_eq(known[i], name))
                i++;
            if (!known[i])
                return arena_printf(a,
                                    "launcher: there is no {%s}; a template names {nodes} {node} "
                                    "{address} {endpoint} {worker}",
                                    name);
            worker |= str_eq(name, "worker");
        }
    }
    return worker ? NULL
                  : "launcher: a template must say where the worker's command goes: {worker}";
}

/* ---- the whole ---- */

static const char *check_command(struct arena *a, const char *const *words) {
    static const char *const others[] = {"mpirun",     "mpiexec",    "srun", "deepspeed",
                                         "accelerate", "horovodrun", "ray",  NULL};
    static const char *const ours[] = {"rankrun", "torchrun", NULL};
    const char *name = program_of(words), *near = str_nearest(name, ours);
    for (size_t i = 0; others[i]; i++)
        if (str_eq(name, others[i]))
            return arena_printf(a,
                                "launcher: %s does not take torchrun's options; write a template "
                                "that names {worker}, and as they are needed {nodes} {node} "
                                "{endpoint}",
                                name);
    if (!words[1] && !strchr(words[0], '/') && near && !str_eq(near, name))
        return arena_printf(a,
                            "launcher must be rankrun, torchrun, a command that takes torchrun's "
                            "options or a template, not \"%s\"; did you mean \"%s\"?",
                            name, near);
    return NULL;
}

const char *launcher_take(struct arena *a, const char *const *words, struct job_spec *ret) {
    bool template = is_template(words);
    const char *wrong = template ? check_template(a, words) : check_command(a, words);
    if (wrong)
        return wrong;
    ret->launcher_argv = words;
    ret->launcher = template                               ? "template"
                    : str_eq(program_of(words), "rankrun") ? "rankrun"
                                                           : "torchrun";
    return NULL;
}

const char *launcher_key_of(const char *option) {
    enum { ABBREVIATED = 5 }; /* Python's parser takes --nproc for --nproc-per-node */
    static const struct {
        const char *option, *key;
    } own[] = {
        {"--nnodes", "job.nnodes"},
        {"--nproc-per-node", "job.workers_per_node"},
        {"--max-restarts", "job.max_restarts"},
        {"--rdzv-backend", "job.rdzv_backend"},
        {"--rdzv-conf", "job.rdzv_conf"},
        {"--rdzv-endpoint", "cluster.store"},
        {"--rdzv-id", "scenario (the name is the run's id)"},
        {"--standalone", "cluster.nodes: 1"},
        {"--node-rank", "nothing (nodes find their ranks)"},
        {"--master-addr", "cluster.store"},
        {"--master-port", "cluster.store"},
        {"--local-addr", "nothing (a node has one address)"},
        {"--no-python", "job.run (the program and its arguments)"},
        {"--module", "job.run: [-m, MODULE, ...]"},
        {"-m", "job.run: [-m, MODULE, ...]"},
    };
    char name[64];
    size_t n = strcspn(option, "=");
    if (n >= sizeof(name) || n < 2)
        return NULL;
    for (size_t i = 0; i <= n; i++)
        name[i] = option[i] == '_' ? '-' : i < n ? option[i] : '\0';
    name[n] = '\0';
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (str_eq(name, own[i].option) || (n >= ABBREVIATED && str_starts(own[i].option, name)))
            return own[i].key;
    return NULL;
}

/* ---- what a launcher's options say ---- */

/* The word is this option, or a beginning of it; *ret: what stands behind its '=', or NULL. */
static bool names(const char *word, const char *option, const char **ret) {
    size_t n = strcspn(word, "=");
    if (n <= strlen("--") || !str_starts(word, "--") || n > strlen(option))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((word[i] == '_' ? '-' : word[i]) != option[i])
            return false;
    *ret = word[n] ? word + n + 1 : NULL;
    return true;
}

static bool is_variable_of(const char *name, const char *option) {
    if (!str_starts(name, "PET_"))
        return false;
    for (name += strlen("PET_"), option += strlen("--"); *name && *option; name++, option++)
        if (*option == '-' ? *name != '_' : *name != toupper((unsigned char)*option))
            return false;
    return !*name && !*option;
}

const char *job_launcher_told(const struct job_spec *job, const char *option) {
    const char *told = NULL, *value;
    for (size_t i = 0; i < job->launcher_args_n; i++) {
        if (!names(job->launcher_args[i], option, &value))
            continue;
        bool last = i + 1 == job->launcher_args_n;
        told = value                                         ? value
               : last || job->launcher_args[i + 1][0] == '-' ? ""
                                                             : job->launcher_args[i + 1];
    }
    for (size_t i = 0; !told && i < job->env_n; i++)
        if (is_variable_of(job->env[i].key, option) && !str_eq(job->env[i].value, "0"))
            told = job->env[i].value;
    return told;
}
