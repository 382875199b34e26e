#include "harness/observe/fetch.h"

#include "agent/base/str.h"
#include "agent/sys/libcurl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static size_t take_body(char *data, size_t size, size_t n, void *arg) {
    struct buf *body = arg;
    if (body->len + size * n > FETCH_BYTES_MAX)
        return 0;
    buf_put(body, data, size * n);
    return size * n;
}

/* "NAME=ADDRESS": to whatever port of NAME a connection is made, it goes to ADDRESS. */
static struct curl_slist *connections(const struct libcurl *curl, const char *const *names,
                                      size_t n) {
    struct curl_slist *list = NULL;
    for (size_t i = 0; i < n; i++) {
        struct buf entry = {0};
        size_t name = strcspn(names[i], "=");
        buf_put(&entry, names[i], name);
        buf_printf(&entry, "::%s:", names[i][name] ? names[i] + name + 1 : "");
        list = curl->curl_slist_append(list, buf_str(&entry));
        buf_fini(&entry);
    }
    return list;
}

static int tell(CURLcode code, long status, const char *said, const struct buf *body,
                struct err *err) {
    if (code == CURLE_OK && status >= 200 && status < 300)
        return 0;
    if (code == CURLE_OK)
        return err_say(err, -EPROTO, "it answered with HTTP status %ld", status);
    if (code == CURLE_WRITE_ERROR)
        return err_say(err, -EMSGSIZE, "it answered with more than %d MB", FETCH_BYTES_MAX >> 20);
    if (body->len || status)
        return err_say(err, -EIO, "its answer broke off: %s", said);
    return err_say(err, -EIO, "no answer: %s", said);
}

static struct curl_slist *headers(const struct libcurl *curl, const char *token) {
    struct buf line = {0};
    buf_printf(&line, "Authorization: Bearer %s", token ? token : "");
    struct curl_slist *list = token ? curl->curl_slist_append(NULL, buf_str(&line)) : NULL;
    buf_fini(&line);
    return list;
}

int fetch_url(const char *url, const char *token, const char *const *names, size_t names_n,
              struct buf *ret, struct err *err) {
    char said[CURL_ERROR_SIZE] = "";
    long status = 0, system = 0;
    const struct libcurl *curl = libcurl_load(err);
    CURL *e = curl ? curl->curl_easy_init() : NULL;
    if (!e)
        return curl ? err_say(err, -EIO, "libcurl did not initialise") : err->code;
    struct curl_slist *to = connections(curl, names, names_n), *with = headers(curl, token);
    curl->curl_easy_setopt(e, CURLOPT_URL, url);
    curl->curl_easy_setopt(e, CURLOPT_CONNECT_TO, to);
    curl->curl_easy_setopt(e, CURLOPT_HTTPHEADER, with);
    curl->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl->curl_easy_setopt(e, CURLOPT_WRITEDATA, ret);
    curl->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, said);
    curl->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl->curl_easy_setopt(e, CURLOPT_USERAGENT, "rankquake/" RANKQUAKE_VERSION);
    CURLcode code = curl->curl_easy_perform(e);
    curl->curl_easy_getinfo(e, CURLINFO_OS_ERRNO, &system);
    if (!*said)
        str_copy(said, sizeof(said), curl->curl_easy_strerror(code));
    size_t n = strlen(said); /* what the system said libcurl leaves out */
    if (system)
        snprintf(said + n, sizeof(said) - n, " (%s)", strerror((int)system));
    curl->curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
    curl->curl_slist_free_all(to);
    curl->curl_slist_free_all(with);
    curl->curl_easy_cleanup(e);
    return tell(code, status, said, ret, err);
}
