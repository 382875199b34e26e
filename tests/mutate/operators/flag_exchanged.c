/* A signal, a flag or a member of an enumeration that is another. */
#include "base/str.h"
#include "tests/mutate/operator.h"

#include <ctype.h>

/* What is mistaken for what, by those who know them. */
static const struct {
    const char *word, *other;
} words[] = {
    {"SIGTERM", "SIGKILL"},
    {"SIGKILL", "SIGTERM"},
    {"SIGCONT", "SIGSTOP"},
    {"SIGSTOP", "SIGCONT"},
    {"SIGINT", "SIGTERM"},
    {"SIGHUP", "SIGTERM"},
    {"SIGQUIT", "SIGTERM"},
    {"SIGUSR1", "SIGUSR2"},
    {"SIGUSR2", "SIGUSR1"},
    {"SIGCHLD", "SIGALRM"},
    {"SIGALRM", "SIGCHLD"},
    {"SIGPIPE", "SIGHUP"},
    {"SIG_IGN", "SIG_DFL"},
    {"SIG_DFL", "SIG_IGN"},
    {"SIG_BLOCK", "SIG_UNBLOCK"},
    {"SIG_UNBLOCK", "SIG_BLOCK"},
    {"SIG_SETMASK", "SIG_BLOCK"},
    {"WNOHANG", "0"},
    {"O_RDONLY", "O_WRONLY"},
    {"O_WRONLY", "O_RDONLY"},
    {"O_RDWR", "O_RDONLY"},
    {"O_TRUNC", "O_APPEND"},
    {"O_APPEND", "O_TRUNC"},
    {"O_CREAT", "0"},
    {"O_EXCL", "0"},
    {"O_CLOEXEC", "0"},
    {"O_NONBLOCK", "0"},
    {"O_NOFOLLOW", "0"},
    {"FD_CLOEXEC", "0"},
    {"SOCK_CLOEXEC", "0"},
    {"SOCK_NONBLOCK", "0"},
    {"SOCK_STREAM", "SOCK_DGRAM"},
    {"MSG_NOSIGNAL", "0"},
    {"MSG_DONTWAIT", "0"},
    {"MSG_PEEK", "0"},
    {"MAP_SHARED", "MAP_PRIVATE"},
    {"MAP_PRIVATE", "MAP_SHARED"},
    {"PROT_WRITE", "0"},
    {"LOCK_EX", "LOCK_SH"},
    {"LOCK_SH", "LOCK_EX"},
    {"LOCK_NB", "0"},
    {"SHUT_RD", "SHUT_WR"},
    {"SHUT_WR", "SHUT_RD"},
    {"SHUT_RDWR", "SHUT_RD"},
    {"CLOCK_MONOTONIC", "CLOCK_REALTIME"},
    {"CLOCK_REALTIME", "CLOCK_MONOTONIC"},
    {"SEEK_SET", "SEEK_END"},
    {"SEEK_END", "SEEK_SET"},
    {"INT64_MAX", "0"},
};

/* The one behind it in its enumeration, behind the last the first; "": there is none. */
struct search {
    CXCursor of;
    bool passed, found;
    CXCursor first, next;
};

static enum CXChildVisitResult look(CXCursor c, CXCursor parent, CXClientData data) {
    struct search *s = data;
    (void)parent;
    if (clang_getCursorKind(c) != CXCursor_EnumConstantDecl)
        return CXChildVisit_Continue;
    if (clang_Cursor_isNull(s->first))
        s->first = c;
    if (s->passed) {
        s->next = c;
        s->found = true;
        return CXChildVisit_Break;
    }
    s->passed = clang_equalCursors(c, s->of);
    return CXChildVisit_Continue;
}

/* An array that is longer does what it did. */
static bool makes_longer(const struct node *n, CXCursor of, CXCursor other) {
    return node_is_length(n) &&
           clang_getEnumConstantDeclValue(other) >= clang_getEnumConstantDeclValue(of);
}

static void find_member(const struct finding *f, const struct node *n) {
    CXCursor of = clang_getCursorReferenced(n->cursor);
    if (clang_getCursorKind(of) != CXCursor_EnumConstantDecl)
        return;
    struct search s = {.of = of, .first = clang_getNullCursor()};
    clang_visitChildren(clang_getCursorSemanticParent(of), look, &s);
    CXCursor other = s.found ? s.next : s.first;
    CXString name = clang_getCursorSpelling(of), instead = clang_getCursorSpelling(other);
    if (s.passed && !clang_equalCursors(of, other) && !makes_longer(n, of, other) &&
        node_reads(f->source, n, clang_getCString(name)))
        find_instead(f, operator_flag_exchanged.name, n, "%s", clang_getCString(instead));
    clang_disposeString(name);
    clang_disposeString(instead);
}

/* A macro is several nodes in one place, of which the outermost counts. */
static bool is_outermost(const struct node *n) {
    return !n->parent || n->parent->begin != n->begin || n->parent->end != n->end;
}

static void find(const struct finding *f, const struct node *n) {
    const struct source *s = f->source;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (clang_isExpression(n->kind) && is_outermost(n) && node_reads(s, n, words[i].word)) {
            find_instead(f, operator_flag_exchanged.name, n, "%s", words[i].other);
            return;
        }
    if (n->kind == CXCursor_DeclRefExpr)
        find_member(f, n);
}

const struct operator operator_flag_exchanged = {
    .name = "flag-exchanged",
    .summary = "a signal, a flag or a member of an enumeration is another",
    .find = find,
};
