/* Writes a folder of class folders: spawn_pictures DIR CLASSES IMAGES. In train/ there are so many
 * images of each class and in val/ a quarter of them, JPEG and PNG, of several sizes; a class is a
 * colour. */
#include "tests/scenarios/jobs/ranktrain/data/pictures.h"

#include <sys/stat.h>

static void write_one(const char *folder, int class, int i) {
    struct picture_colours c = {{(uint8_t)(40 * class + i % 30), (uint8_t)(200 - 50 * class), 90},
                                {(uint8_t)(255 - 60 * class), (uint8_t)(i % 50), 200}};
    char path[4096];
    snprintf(path, sizeof(path), "%s/%04d.%s", folder, i, i % 2 ? "png" : "jpg");
    if (i % 2)
        picture_write_png(path, 40 + i % 7, 36, &c);
    else
        picture_write_jpeg(path, 48, 40 + i % 5, &c);
}

static void write_set(const char *dir, const char *set, int classes, int images) {
    char path[4000];
    snprintf(path, sizeof(path), "%s/%s", dir, set);
    mkdir(path, 0755);
    for (int k = 0; k < classes; k++) {
        snprintf(path, sizeof(path), "%s/%s/class%d", dir, set, k);
        if (mkdir(path, 0755) < 0)
            abort();
        for (int i = 0; i < images; i++)
            write_one(path, k, i);
    }
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 64;
    mkdir(argv[1], 0755);
    write_set(argv[1], "train", atoi(argv[2]), atoi(argv[3]));
    write_set(argv[1], "val", atoi(argv[2]), atoi(argv[3]) / 4);
    return 0;
}
