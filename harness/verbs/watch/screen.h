/* screen: frames on a terminal, each written over the one before, ten a second at most. Where lines cannot
 * be written over there are no frames. */
#pragma once

#include "base/buf.h"
#include "base/sys/loop.h"
#include "reports/report.h"

#include <stdbool.h>
#include <stdio.h>

struct screen;

/* What is to be drawn now, at most so many lines. */
typedef void screen_fn(void *arg, const struct report_style *style, int rows, struct buf *out);

struct screen *screen_new(struct loop *loop, FILE *out, screen_fn *fn, void *arg);
/* Something has changed: it is drawn at once, or when a tenth of a second has passed. */
void screen_changed(struct screen *s);
/* The last frame is drawn, and stays; NULL is allowed; returns NULL. */
struct screen *screen_free(struct screen *s);
bool screen_has_frames(FILE *out);
