#include "base/completion.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

/* ---- what a value can be ---- */

/* "auto|cpu|cuda": all of them words that are typed as they stand. */
static bool is_choice(const char *value) {
    if (!strchr(value, '|'))
        return false;
    for (; *value; value++)
        if (isupper((unsigned char)*value) || strchr(",:. ", *value))
            return false;
    return true;
}

static void put_choices(struct buf *out, const char *value) {
    for (; *value; value += strspn(value, "|")) {
        size_t n = strcspn(value, "|");
        buf_printf(out, "%.*s\n", (int)n, value);
        value += n;
    }
}

/* "FILE|DIR" are several kinds, each of which is asked for. */
static void put_kind(struct buf *out, const struct completion *c, const char *kind) {
    if (c->values && c->values(kind, out))
        return;
    if (str_eq(kind, "FILE") || str_eq(kind, "PAGE") || str_eq(kind, "HISTORY"))
        buf_puts(out, ":files\n");
    else if (str_eq(kind, "DIR"))
        buf_puts(out, ":dirs\n");
}

static void put_values(struct buf *out, const struct completion *c, const char *value) {
    char kind[64];
    if (is_choice(value)) {
        put_choices(out, value);
        return;
    }
    for (; *value; value += strspn(value, "|")) {
        size_t n = strcspn(value, "|");
        str_copy(kind, n + 1 < sizeof(kind) ? n + 1 : sizeof(kind), value);
        put_kind(out, c, kind);
        value += n;
    }
}

/* Those lines that go on as what is typed, with before in front: directives always. */
static void keep(struct buf *out, const struct buf *lines, const char *before, const char *typed) {
    const char *line = buf_str(lines);
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        if (*line == ':')
            buf_printf(out, "%.*s\n", (int)n, line);
        else if (str_starts(line, typed))
            buf_printf(out, "%s%.*s\n", before, (int)n, line);
    }
}

static void complete_value(struct buf *out, const struct completion *c, const char *value,
                           const char *before, const char *typed) {
    BUF_FINI struct buf lines = {0};
    put_values(&lines, c, value);
    keep(out, &lines, before, typed);
}

/* ---- where the last word stands ---- */

static bool is_of(const struct manual_option *o, const struct completion_command *command) {
    return o->text && (!o->command || str_eq(o->command, command ? command->name : ""));
}

static const struct manual_option *find_option(const struct completion *c,
                                               const struct completion_command *command,
                                               const char *word) {
    size_t n = strcspn(word, "=");
    for (const struct manual_option *o = c->options; o && o->name; o++)
        if (is_of(o, command) &&
            ((strlen(o->name) == n && strncmp(o->name, word, n) == 0) ||
             (o->letter && word[0] == '-' && word[1] == o->letter && !word[2])))
            return o;
    return NULL;
}

static const struct completion_command *find_command(const struct completion *c, const char *word) {
    for (const struct completion_command *d = c->commands; d && d->name; d++)
        if (str_eq(d->name, word))
            return d;
    return NULL;
}

struct typing_place {
    const struct completion_command *command;
    const struct manual_option *option; /* whose value is typed; NULL: none's */
    bool any;                           /* a word that is no option stands before */
    size_t foreign; /* the index of the word that begins somebody else's command; 0: none */
};

/* typed[0] may be a program too: foreign counts from 1. */
static struct typing_place find_place(const struct completion *c, const char *const *typed,
                                      size_t last) {
    struct typing_place p = {0};
    for (size_t i = 0; i < last; i++) {
        const char *word = typed[i];
        if (p.option) {
            p.option = NULL;
        } else if (str_eq(word, "--")) {
            p.foreign = i + 2;
            break;
        } else if (word[0] == '-' && word[1]) {
            const struct manual_option *o = find_option(c, p.command, word);
            p.option = o && o->value && !strchr(word, '=') ? o : NULL;
        } else if (!p.any) {
            p.command = find_command(c, word);
            p.any = true;
            if (!p.command && c->takes_program) {
                p.foreign = i + 1;
                break;
            }
        }
    }
    return p;
}

static void put_options(struct buf *out, const struct completion *c, const struct typing_place *p) {
    for (const struct manual_option *o = c->options; o && o->name; o++)
        if (is_of(o, p->command))
            buf_printf(out, "%s\t%s\n", o->name, o->text);
}

static void put_commands(struct buf *out, const struct completion *c) {
    for (const struct completion_command *d = c->commands; d && d->name; d++)
        buf_printf(out, "%s\t%s\n", d->name, d->text);
}

/* "--" says that somebody else's command follows, and is offered with the options. */
static void complete_option(struct buf *out, const struct completion *c,
                            const struct typing_place *p, const char *word) {
    const char *equals = strchr(word, '=');
    const struct manual_option *o = find_option(c, p->command, word);
    if (equals) {
        char before[80];
        size_t n = (size_t)(equals + 1 - word);
        str_copy(before, n + 1 < sizeof(before) ? n + 1 : sizeof(before), word);
        if (o && o->value)
            complete_value(out, c, o->value, before, equals + 1);
        return;
    }
    BUF_FINI struct buf lines = {0};
    put_options(&lines, c, p);
    if (p->command && p->command->takes_command)
        buf_puts(&lines, "--\tthe command to run follows\n");
    keep(out, &lines, "", word);
}

static void complete_operand(struct buf *out, const struct completion *c,
                             const struct typing_place *p, const char *word, size_t at) {
    BUF_FINI struct buf lines = {0};
    const char *operands = p->command ? p->command->operands : c->operands;
    bool begins = p->command && !operands && p->command->takes_command;
    if (!p->any)
        put_commands(&lines, c);
    if (operands)
        put_values(&lines, c, operands);
    if (c->takes_program && !p->any)
        buf_printf(&lines, ":command %zu\n", at);
    if (begins)
        buf_puts(&lines, "--\tthe command to run follows\n");
    keep(out, &lines, "", word);
}

void completion_words(struct buf *out, const struct completion *c, const char *const *typed,
                      size_t n) {
    const char *word = n ? typed[n - 1] : "";
    size_t at = n ? n - 1 : 0;
    struct typing_place p = find_place(c, typed, at);
    if (p.foreign)
        buf_printf(out, ":command %zu\n", p.foreign - 1);
    else if (p.option)
        complete_value(out, c, p.option->value, "", word);
    else if (*word == '-')
        complete_option(out, c, &p, word);
    else
        complete_operand(out, c, &p, word, at);
}

/* ---- the shells ---- */

/* In these @P@ stands for the program and @A@ for how it is asked. Bash has cut the line at = and
 * at :, so the words are put together again, and what it has cut off is cut off the answers. */
static const char bash[] =
    "# bash completion for @P@, printed by the program itself\n"
    "_@P@() {\n"
    "    local cur line word first i joined=() from=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#joined[@]})) && [[ $COMP_WORDBREAKS == *=* ]] &&\n"
    "            { [[ $word == = && ${joined[-1]} == --* ]] || [[ ${joined[-1]} == --*= ]]; }; "
    "then\n"
    "            joined[-1]+=$word\n"
    "        else\n"
    "            joined+=(\"$word\") from+=($i)\n"
    "        fi\n"
    "    done\n"
    "    cur=${joined[-1]} COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        case $line in\n"
    "        :files) compopt -o filenames; COMPREPLY+=($(IFS=$'\\n'; compgen -f -- "
    "\"${cur#--*=}\")) ;;\n"
    "        :dirs) compopt -o filenames; COMPREPLY+=($(IFS=$'\\n'; compgen -d -- "
    "\"${cur#--*=}\")) ;;\n"
    "        :command*)\n"
    "            first=${from[${line#:command }]}\n"
    "            if declare -F _command_offset >/dev/null; then\n"
    "                if ((first == COMP_CWORD)); then\n"
    "                    COMPREPLY+=($(compgen -c -f -- \"$cur\"))\n"
    "                else\n"
    "                    _command_offset \"$first\"\n"
    "                fi\n"
    "            else\n"
    "                compopt -o filenames\n"
    "                COMPREPLY+=($(IFS=$'\\n'; compgen -f -- \"$cur\"))\n"
    "                ((first != COMP_CWORD)) || COMPREPLY+=($(compgen -c -- \"$cur\"))\n"
    "            fi ;;\n"
    "        *) COMPREPLY+=(\"${word#\"${cur%%=*}=\"}\") ;;\n"
    "        esac\n"
    "    done < <(command @P@ @A@ -- \"${joined[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _@P@ @P@\n";

static const char zsh[] =
    "#compdef @P@\n"
    "# zsh completion for @P@, printed by the program itself\n"
    "_@P@() {\n"
    "    local line word text first\n"
    "    local -a lines found\n"
    "    lines=(\"${(@f)$(command @P@ @A@ -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    for line in $lines; do\n"
    "        case $line in\n"
    "        ':files') _files -P \"${${(M)PREFIX:#--*=*}%%=*}\" ;;\n"
    "        ':dirs') _files -/ ;;\n"
    "        ':command '*)\n"
    "            first=$((${line#:command } + 2))\n"
    "            shift $((first - 1)) words\n"
    "            ((CURRENT -= first - 1))\n"
    "            _normal ;;\n"
    "        *)\n"
    "            word=${line%%$'\\t'*} text=${line#*$'\\t'}\n"
    "            found+=(\"${word//:/\\\\:}${${text:#$word}:+:$text}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (($#found)) && _describe -V '@P@' found\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _@P@ ]; then _@P@ \"$@\"; else compdef _@P@ @P@; "
    "fi\n";

static const char fish[] =
    "# fish completion for @P@, printed by the program itself\n"
    "function __@P@_complete\n"
    "    set -l typed (commandline -opc) (commandline -ct)\n"
    "    set -l cur (commandline -ct)\n"
    "    for line in (command @P@ @A@ -- $typed[2..-1] 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                __fish_complete_path (string replace -r '^--[^=]*=' '' -- $cur)\n"
    "            case ':dirs'\n"
    "                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- $cur)\n"
    "            case ':command *'\n"
    "                set -l first (math (string replace ':command ' '' -- $line) + 2)\n"
    "                complete -C (string join ' ' -- (string escape -- $typed[$first..-2]) $cur)\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c @P@ -f -a '(__@P@_complete)'\n";

static void put_script(struct buf *out, const char *script, const char *program, const char *ask) {
    for (; *script; script++)
        if (strncmp(script, "@P@", 3) == 0 || strncmp(script, "@A@", 3) == 0) {
            buf_puts(out, script[1] == 'P' ? program : ask);
            script += 2;
        } else
            buf_put(out, script, 1);
}

bool completion_script(struct buf *out, const char *shell, const char *program, const char *ask) {
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"fish", fish}, {"zsh", zsh}};
    for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++)
        if (str_eq(shells[i].name, shell)) {
            put_script(out, shells[i].script, program, ask);
            return true;
        }
    return false;
}
