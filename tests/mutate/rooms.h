/* rooms: what a source is counted with. */
#pragma once

/* The room of a file; one that is in none is in its folder. */
const char *room_of(const char *path, char *buf, int size);
