/* Writes the history of a simulated run into a run directory. */
#include "harness/sim/history_writer.h"

#include "base/sys/file.h"

#include <errno.h>

static int write_scenario(const struct sim_schedule *s, const struct history *h,
                          const struct sim_result *r, const char *path, struct err *err) {
    struct buf text = {0};
    sim_scenario(s, h, r, &text);
    int rc = file_write(path, text.data, text.len, err);
    buf_fini(&text);
    return rc;
}

int sim_record_into(const struct sim_schedule *s, const char *dir, struct sim_result *ret,
                    struct err *err) {
    struct history h = {0};
    BUF_FINI struct buf path = {0};
    int rc = file_make_dirs(dir, 0777, err);
    buf_printf(&path, "%s/history.jsonl", dir);
    if (rc == 0)
        rc = history_create(&h, buf_str(&path), err);
    if (rc == 0) {
        sim_record(s, false, &h, ret);
        if (h.write_error)
            rc = err_set(err, -h.write_error, "write %s", buf_str(&path));
    }
    buf_clear(&path);
    buf_printf(&path, "%s/scenario.yaml", dir);
    if (rc == 0)
        rc = write_scenario(s, &h, ret, buf_str(&path), err);
    history_fini(&h);
    return rc;
}
