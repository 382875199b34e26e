#include "agent/store/sign_in.h"

#include "agent/store/gateway.h"
#include "base/http/http.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys/munge.h"

#include <string.h>

enum { SIGN_IN_MS = 5000 };

bool sign_in_is_used(const struct sign_in *s) {
    return s->access && (s->access->user || s->access->sealed);
}

bool sign_in_is_due(const struct sign_in *s) {
    return sign_in_is_used(s) && (!s->times || s->stale);
}

/* What a store of rankrun has sealed for our user; "": it wants none of us. NULL: we cannot open
 * it, for the reason in err. */
static const char *open_sealed(const struct sign_in *s, const char *sealed, struct err *err) {
    char *token = *s->access->sealed;
    BUF_FINI struct buf text = {0};
    token[0] = '\0';
    int code = *sealed ? munge_open(sealed, &text, err) : 0;
    if (!code && *sealed)
        code = token_check(buf_str(&text), err);
    if (!code)
        str_copy(token, TOKEN_MAX + 1, buf_str(&text));
    return code ? NULL : token;
}

/* A store without tokens, an old one too, takes calls without. */
static bool take_sealed(struct sign_in *s, struct arena *arena, long status, const struct buf *body,
                        const char **ret_why) {
    const struct json *j = json_parse(arena, buf_str(body), body->len, NULL);
    const char *sealed = status == 200 ? json_get_string(j, "munge", "") : "";
    struct err err = {0};
    if (!status)
        return false;
    const char *token = open_sealed(s, sealed, &err);
    if (!token) {
        *ret_why = arena_printf(arena,
                                "it tells its token by munge, which cannot be opened here: %s; the "
                                "variable RANKRUN_STORE_TOKEN, the same on all nodes, sets one",
                                err.msg);
        return false;
    }
    if (*token)
        http_show_token(s->http, token);
    return true;
}

/* An etcd that asks nobody for a password takes calls without a token. */
static bool take_token(struct sign_in *s, struct arena *arena, long status, const struct buf *body,
                       const char **ret_why) {
    const struct json *j = json_parse(arena, buf_str(body), body->len, NULL);
    const char *token = status == 200 ? json_get_string(j, "token", NULL) : NULL;
    const char *text = gateway_take_error(arena, buf_str(body), body->len);
    if (!token && text && strstr(text, "authentication is not enabled"))
        token = "";
    if (token)
        http_authorize(s->http, token);
    else if (text)
        *ret_why = arena_printf(arena, "user %s: %s", s->access->user, gateway_advise(arena, text));
    else if (status)
        *ret_why = gateway_describe_stranger(arena, status, body);
    return token != NULL;
}

static void on_answer(void *arg, long status, const struct buf *body, const char *error) {
    struct sign_in *s = arg;
    ARENA_FINI struct arena arena = {0};
    const char *why = error;
    bool user = s->access->user;
    s->call = NULL;
    bool good = user ? take_token(s, &arena, status, body, &why)
                     : take_sealed(s, &arena, status, body, &why);
    s->times += good;
    s->stale = s->stale && !good;
    s->fn(s->arg,
          good                    ? SIGNED_IN
          : user && status == 404 ? SIGN_IN_NO_SUCH_URL
                                  : SIGN_IN_FAILED,
          why);
}

void sign_in_begin(struct sign_in *s, const char *url) {
    const struct store_access *a = s->access;
    BUF_FINI struct buf body = {0};
    if (s->call)
        return;
    struct json_writer w = {.out = &body};
    json_object(&w, NULL);
    if (a->user) {
        json_put_string(&w, "name", a->user);
        json_put_string(&w, "password", a->password ? a->password : "");
    }
    json_end_object(&w);
    http_authorize(s->http, "");
    struct http_request r = {
        .method = "POST", .url = url, .body = &body, .type = HTTP_JSON, .timeout_ms = SIGN_IN_MS};
    s->call = http_send(s->http, &r, on_answer, s);
}

void sign_in_cancel(struct sign_in *s) {
    if (s->call)
        http_cancel(s->call);
    s->call = NULL;
}
