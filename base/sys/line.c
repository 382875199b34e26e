#include "base/sys/line.h"

#include "base/json.h"
#include "base/printable.h"
#include "base/sys/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static bool as_json;

void line_as_json(bool json) {
    as_json = json;
}

bool line_is_json(void) {
    return as_json;
}

static void put_time(struct json_writer *w) {
    char text[64] = "", whole[80];
    int64_t now_ns = clock_realtime_ns();
    time_t s = (time_t)(now_ns / 1000000000);
    struct tm tm;
    if (gmtime_r(&s, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(whole, sizeof(whole), "%s.%03dZ", text, (int)(now_ns / 1000000 % 1000));
    json_put_string(w, "time", whole);
}

static void make_json(struct buf *out, const struct line *l, const char *text) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    put_time(&w);
    json_put_string(&w, "level", l->level);
    json_put_string(&w, "what", l->what);
    if (l->round)
        json_put_i64(&w, "round", l->round);
    for (size_t i = 0; i < l->n_fields; i++) {
        const struct line_field *f = &l->fields[i];
        if (f->text)
            json_put_string(&w, f->key, f->text);
        else
            json_put_i64(&w, f->key, f->number);
    }
    json_put_string(&w, "text", text);
    json_end_object(&w);
}

static void put(const struct line *l, const char *fmt, va_list ap) {
    BUF_FINI struct buf text = {0}, out = {0};
    buf_vprintf(&text, fmt, ap);
    if (as_json) {
        make_json(&out, l, buf_str(&text));
    } else {
        buf_puts(&out, "rankrun: ");
        printable_puts(&out, buf_str(&text));
    }
    buf_putc(&out, '\n');
    fwrite(buf_str(&out), 1, out.len, l->on_stdout ? stdout : stderr);
    if (l->on_stdout)
        fflush(stdout);
}

void line_put_object(const char *json) {
    BUF_FINI struct buf out = {0};
    buf_printf(&out, "%s\n", json);
    fwrite(buf_str(&out), 1, out.len, stderr);
}

void line_put(const struct line *l, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put(l, fmt, ap);
    va_end(ap);
}

void line_say(const char *level, const char *what, const char *fmt, ...) {
    const struct line l = {.level = level, .what = what};
    va_list ap;
    va_start(ap, fmt);
    put(&l, fmt, ap);
    va_end(ap);
}
