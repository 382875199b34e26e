/* plain_page: how pages begin that run no script and need nothing but themselves; its policy lets a
 * browser load nothing else, whatever the texts on it say. */
#pragma once

extern const char plain_page_head[]; /* up to the title */
extern const char
    plain_page_style[]; /* from <style> on; what more the page has, and </style>, follow */
