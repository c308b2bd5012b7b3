#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy.h"

static const char *step = "";

static int fail(void) {
    fprintf(stderr, "%s: %s\n", step, strerror(errno));
    return 1;
}

/* Makes mounts writable as in a privileged container, which may be unable to start if the engine itself runs in a container. */
static void open_up(const struct mount_point *mount) {
    const char *kinds[] = {"sysfs", "cgroup", "cgroup2"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(mount->type, kinds[i]) == 0) mount_again(mount->path);
}

int prepare(const char *workspace) {
    char program[4096];
    snprintf(program, sizeof program, "%s/setuid-program", workspace);
    step = "chmod of the workspace";
    if (chmod(workspace, 0755) != 0) return fail();
    step = "a setuid program";
    if (copy_self(program) != 0 || chmod(program, 04755) != 0) return fail();
    step = "a shared mount";
    if (mount(NULL, "/tmp", NULL, MS_SHARED, NULL) != 0) return fail();
    each_mount(open_up);
    return 0;
}
