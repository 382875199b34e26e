#include "scenarios/jobs/ranktrain/prepare/fetch.h"
#include "scenarios/jobs/ranktrain/data/archive.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/http/http.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NOT_TRUSTED "; name who signs the server's certificate by --cacert=FILE (or CURL_CA_BUNDLE)"
#define BAD_CACERT  "; --cacert (or CURL_CA_BUNDLE) is a file of certificates in PEM"

enum { FILE_MAX = 1 << 30, SILENCE_MS = 30000, CONNECT_MS = 15000, CHUNK = 1 << 16 };

static bool is_archive(const char *name) {
    return str_ends(name, ".tar.gz");
}

/* Of the bytes as they are, or unpacked. */
static int sum_of(const char *path, bool unpacked, char ret[65], struct err *err) {
    struct sha256 s;
    sha256_init(&s);
    if (!unpacked) {
        BUF_FINI struct buf b = {0};
        int r = file_read_plain(path, FILE_MAX, &b, err);
        sha256_update(&s, buf_str(&b), b.len);
        sha256_hex(&s, ret);
        return r;
    }
    struct unpacker u;
    char block[CHUNK];
    int r = unpacker_open(&u, path, err);
    size_t n = 1;
    while (r == 0 && n > 0) {
        r = unpacker_some(&u, block, sizeof(block), &n, err);
        sha256_update(&s, block, r == 0 ? n : 0);
    }
    unpacker_close(&u);
    sha256_hex(&s, ret);
    return r;
}

static int verify(const struct dataset_file *f, const char *path, struct err *err) {
    char sum[65];
    int r = sum_of(path, !is_archive(f->name), sum, err);
    if (r == 0 && strcmp(sum, f->sha256) != 0)
        r = err_say(
            err, -EBADMSG,
            "%s is not the known file: its SHA-256%s is %s and should be %s; fetch it again, "
            "or say --no-verify",
            path, is_archive(f->name) ? "" : ", unpacked,", sum, f->sha256);
    return r;
}

static int fetch_one(const char *url, const char *name, const char *path, const char *cacert,
                     struct err *err) {
    BUF_FINI struct buf body = {0}, whole = {0};
    buf_printf(&whole, "%s%s%s", url, str_ends(url, "/") ? "" : "/", name);
    const struct http_question q = {
        .way = {.https = strncmp(url, "https:", strlen("https:")) == 0,
                .cacert = cacert && *cacert ? cacert : NULL,
                .advice = {[HTTP_NOT_TRUSTED] = NOT_TRUSTED, [HTTP_BAD_CACERT] = BAD_CACERT}},
        .request = {.method = "GET",
                    .url = buf_str(&whole),
                    .agent = "ranktrain/" RANKQUAKE_VERSION,
                    .timeout_ms = CONNECT_MS},
        .silence_ms = SILENCE_MS,
        .bytes_max = FILE_MAX};
    int r = http_ask(&q, &body, err);
    if (r < 0)
        return err_wrap(err, "%s: ", buf_str(&whole));
    printf("fetched %s, %zu bytes\n", buf_str(&whole), body.len);
    return file_write(path, body.data, body.len, err);
}

int fetch_files(const struct dataset_kind *k, const char *url, const char *dir,
                const struct fetch_way *way, struct err *err) {
    int r = 0;
    for (const struct dataset_file *f = k->files; f->name && r == 0; f++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", dir, f->name);
        r = fetch_one(url, f->name, path, way->cacert, err);
        if (r == 0 && !way->unverified)
            r = verify(f, path, err);
        if (r == 0 && is_archive(f->name))
            r = archive_unpack(path, dir, err);
    }
    return r;
}

int fetch_verify(const struct dataset_kind *k, const char *dir, int *ret_known, struct err *err) {
    *ret_known = 0;
    for (const struct dataset_file *f = k->files; f->name; f++) {
        char path[PATH_MAX], *gz;
        snprintf(path, sizeof(path), "%s/%s", dir, f->name);
        gz = path + strlen(path) - strlen(".gz");
        if (!file_exists(path) && !is_archive(f->name))
            *gz = '\0';
        if (!file_exists(path))
            continue;
        int r = verify(f, path, err);
        if (r < 0)
            return r;
        ++*ret_known;
    }
    return 0;
}
