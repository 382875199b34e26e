#include "tests/mutate/source.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { SOURCE_MAX = 4 << 20 };

/* ---- the tree ---- */

struct growth {
    struct source *source;
    struct node *parent, *last;
    CXFile file;
};

static bool place(const struct growth *g, CXSourceLocation at, size_t *ret) {
    CXFile file;
    unsigned offset;
    clang_getExpansionLocation(at, &file, NULL, NULL, &offset);
    *ret = offset;
    return file && clang_File_isEqual(file, g->file);
}

static enum CXChildVisitResult grow(CXCursor cursor, CXCursor parent, CXClientData data) {
    struct growth *g = data;
    struct node n = {.cursor = cursor, .kind = clang_getCursorKind(cursor), .parent = g->parent};
    CXSourceRange range = clang_getCursorExtent(cursor);
    (void)parent;
    if (!place(g, clang_getRangeStart(range), &n.begin) ||
        !place(g, clang_getRangeEnd(range), &n.end) || n.end < n.begin ||
        n.end > g->source->text.len)
        return CXChildVisit_Continue;
    struct node *made = arena_new(&g->source->nodes, struct node);
    *made = n;
    if (g->last)
        g->last->next = made;
    else
        g->parent->first = made;
    g->last = made;
    struct growth below = {g->source, made, NULL, g->file};
    clang_visitChildren(cursor, grow, &below);
    return CXChildVisit_Continue;
}

static int compiles(const struct source *s, struct err *err) {
    for (unsigned i = 0; i < clang_getNumDiagnostics(s->unit); i++) {
        CXDiagnostic d = clang_getDiagnostic(s->unit, i);
        CXString text = clang_formatDiagnostic(d, clang_defaultDiagnosticDisplayOptions());
        int r =
            clang_getDiagnosticSeverity(d) < CXDiagnostic_Error
                ? 0
                : err_say(err, -EINVAL, "%s does not compile: %s", s->path, clang_getCString(text));
        clang_disposeString(text);
        clang_disposeDiagnostic(d);
        if (r)
            return r;
    }
    return 0;
}

int source_open(struct source *s, const char *path, const char *const *flags, int n_flags,
                struct err *err) {
    *s = (struct source){.path = path};
    int r = file_read(path, SOURCE_MAX, &s->text, err);
    if (r)
        return r;
    s->index = clang_createIndex(0, 0);
    s->unit =
        clang_parseTranslationUnit(s->index, path, flags, n_flags, NULL, 0, CXTranslationUnit_None);
    if (!s->unit)
        return err_say(err, -EINVAL, "libclang cannot read %s", path);
    if ((r = compiles(s, err)))
        return r;
    s->root = arena_new(&s->nodes, struct node);
    s->root->kind = CXCursor_TranslationUnit;
    s->root->end = s->text.len;
    struct growth g = {s, s->root, NULL, clang_getFile(s->unit, path)};
    clang_visitChildren(clang_getTranslationUnitCursor(s->unit), grow, &g);
    return 0;
}

void source_close(struct source *s) {
    if (s->unit)
        clang_disposeTranslationUnit(s->unit);
    if (s->index)
        clang_disposeIndex(s->index);
    arena_fini(&s->nodes);
    buf_fini(&s->text);
}

/* ---- what stands there ---- */

struct node *node_child(const struct node *n, int index) {
    struct node *c = n->first;
    while (c && index-- > 0)
        c = c->next;
    return c;
}

int node_children(const struct node *n) {
    int count = 0;
    for (const struct node *c = n->first; c; c = c->next)
        count++;
    return count;
}

bool node_reads(const struct source *s, const struct node *n, const char *text) {
    size_t len = strlen(text);
    return n->end - n->begin == len && memcmp(s->text.data + n->begin, text, len) == 0;
}

bool node_alike(const struct source *s, const struct node *a, const struct node *b) {
    return a->end - a->begin == b->end - b->begin &&
           memcmp(s->text.data + a->begin, s->text.data + b->begin, a->end - a->begin) == 0;
}

bool node_opens(const struct source *s, const struct node *n, const char *word) {
    const char *at = s->text.data + n->begin;
    size_t len = strlen(word);
    return n->end - n->begin > len && memcmp(at, word, len) == 0 &&
           !isalnum((unsigned char)at[len]) && at[len] != '_';
}

static size_t skip_blanks(const struct source *s, size_t at, size_t end) {
    while (at < end && isspace((unsigned char)s->text.data[at]))
        at++;
    return at;
}

bool node_between(const struct source *s, const struct node *a, const struct node *b,
                  const char *text) {
    size_t len = strlen(text);
    if (a->end + len > b->begin)
        return false;
    size_t at = skip_blanks(s, a->end, b->begin);
    return at + len <= b->begin && memcmp(s->text.data + at, text, len) == 0 &&
           skip_blanks(s, at + len, b->begin) == b->begin;
}

const struct node *node_holder(const struct node *n) {
    while (n && n->parent && n->parent->kind != CXCursor_TranslationUnit)
        n = n->parent;
    return n && n->parent ? n : NULL;
}

/* ---- what it is ---- */

static bool is_branch(const struct source *s, const struct node *parent, const struct node *n) {
    switch ((int)parent->kind) {
    case CXCursor_CompoundStmt:
        return true;
    case CXCursor_IfStmt:
    case CXCursor_WhileStmt:
        return n != parent->first;
    case CXCursor_DoStmt:
        return n == parent->first;
    case CXCursor_ForStmt:
        return !n->next && n->end == parent->end;
    case CXCursor_CaseStmt:
        return n != parent->first;
    case CXCursor_DefaultStmt:
    case CXCursor_LabelStmt:
        return true;
    default:
        (void)s;
        return false;
    }
}

bool node_is_statement(const struct source *s, const struct node *n) {
    size_t at = skip_blanks(s, n->end, s->text.len);
    return n->parent && is_branch(s, n->parent, n) && at < s->text.len && s->text.data[at] == ';';
}

/* Of a for the part between its semicolons; a loop that is a macro has none in the text. */
static struct node *for_condition(const struct source *s, const struct node *n) {
    size_t semicolon[2], found = 0;
    int depth = 0;
    for (size_t i = n->begin; i < n->end && found < 2; i++) {
        char c = s->text.data[i];
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == ';' && depth == 1)
            semicolon[found++] = i;
    }
    for (struct node *c = n->first; c && found == 2; c = c->next)
        if (c->begin > semicolon[0] && c->end <= semicolon[1])
            return c;
    return NULL;
}

struct node *node_condition(const struct source *s, const struct node *n) {
    switch ((int)n->kind) {
    case CXCursor_IfStmt:
        return node_opens(s, n, "if") ? n->first : NULL;
    case CXCursor_WhileStmt:
        return node_opens(s, n, "while") ? n->first : NULL;
    case CXCursor_DoStmt:
        return node_opens(s, n, "do") ? node_child(n, 1) : NULL;
    case CXCursor_ForStmt:
        return node_opens(s, n, "for") ? for_condition(s, n) : NULL;
    case CXCursor_ConditionalOperator:
        return node_children(n) == 3 && node_between(s, n->first, n->first->next, "?") &&
                       node_between(s, n->first->next, n->first->next->next, ":")
                   ? n->first
                   : NULL;
    default:
        return NULL;
    }
}

const struct node *node_bare(const struct node *n) {
    while ((n->kind == CXCursor_UnexposedExpr || n->kind == CXCursor_ParenExpr) &&
           node_children(n) == 1)
        n = n->first;
    return n;
}

bool node_is_length(const struct node *n) {
    for (n = n->parent; n && clang_isExpression(n->kind); n = n->parent)
        if (n->kind == CXCursor_InitListExpr || n->kind == CXCursor_CallExpr)
            return false;
    if (!n || (n->kind != CXCursor_VarDecl && n->kind != CXCursor_FieldDecl))
        return n && n->kind == CXCursor_ParmDecl;
    enum CXTypeKind kind = clang_getCanonicalType(clang_getCursorType(n->cursor)).kind;
    return kind == CXType_ConstantArray || kind == CXType_VariableArray;
}
