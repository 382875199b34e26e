#include "harness/ci/runner.h"

#include "base/str.h"

#include <stdlib.h>

const struct runner runners[] = {
    {.name = "github",
     .title = "GitHub Actions",
     .sign = "GITHUB_ACTIONS",
     .summary = "GITHUB_STEP_SUMMARY",
     .outputs = "GITHUB_OUTPUT",
     .commands = true},
    {.name = "gitlab", .title = "GitLab CI", .sign = "GITLAB_CI", .only = "gitlab"},
    {.name = "buildkite", .title = "Buildkite", .sign = "BUILDKITE", .failed = "^^^ +++"},
    {.name = "jenkins", .title = "Jenkins", .sign = "JENKINS_URL"},
    {.name = "none", .title = "no CI server that is known here"},
};

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value && !str_eq(value, "false") && !str_eq(value, "0");
}

const struct runner *runner_find(void) {
    const struct runner *r = runners;
    while (r->sign && !is_set(r->sign))
        r++;
    return r;
}
