#include "agent/sys/libcurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

const struct libcurl *libcurl_load(struct err *err) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    static struct libcurl curl;
    static bool loaded;
    void *lib = NULL;
    if (loaded)
        return &curl;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        err_say(err, -ENOENT, "libcurl is not installed (Debian, Ubuntu: apt install libcurl4)");
        return NULL;
    }
#define X(name)                                                                                    \
    curl.name = (__typeof__(curl.name))dlsym(lib, #name);                                          \
    if (!curl.name) {                                                                              \
        err_say(err, -ENOENT, "the libcurl of this machine has no %s: install libcurl4", #name);   \
        return NULL;                                                                               \
    }
    LIBCURL_FUNCTIONS(X)
#undef X
    if (curl.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        err_say(err, -EIO, "libcurl did not initialise");
        return NULL;
    }
    loaded = true;
    return &curl;
}
