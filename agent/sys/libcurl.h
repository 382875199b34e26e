/* libcurl: loaded when it is first asked for and never linked, so that whoever asks nobody by
 * it pays nothing for it and needs it not. */
#pragma once

#include "agent/base/err.h"

#define CURL_DISABLE_TYPECHECK /* its macros cannot wrap a function that was looked up */
#include <curl/curl.h>

#define LIBCURL_FUNCTIONS(X)                                                                       \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_easy_cleanup)                                                                           \
    X(curl_multi_init)                                                                             \
    X(curl_multi_setopt)                                                                           \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_socket_action)                                                                    \
    X(curl_multi_assign)                                                                           \
    X(curl_multi_info_read)                                                                        \
    X(curl_multi_cleanup)                                                                          \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)

/* Its functions, each under its own name. */
struct libcurl {
#define X(name) __typeof__(&(name)) name;
    LIBCURL_FUNCTIONS(X)
#undef X
};

/* Initialised, the process's own. NULL with err: -ENOENT it is not installed, and the sentence
 * says what to install; -EIO it does not work. Not for several threads at once. */
const struct libcurl *libcurl_load(struct err *err);
