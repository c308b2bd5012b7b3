/* Attempts to make files, in many places and of many kinds. */
#include "attempts.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int create_and_remove(const char *path) {
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    close(file);
    unlink(path);
    return 0;
}

static int device_in_workspace(void) {
    char path[4352];
    snprintf(path, sizeof path, "%s/brig-attempt-device", need("workspace"));
    if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) != 0) return errno;
    unlink(path);
    return DONE;
}

static int workspace_change(void) {
    char path[4352];
    snprintf(path, sizeof path, "%s/brig-attempt", need("workspace"));
    return create_and_remove(path);
}

/* Tries to write to, make, remove and move away each name. Changes that succeed are undone. */
static int protected_names(void) {
    need("protected");
    const char *path;
    for (int i = 0; (path = given("protected", i)); i++) {
        char below[4352], away[4352];
        snprintf(below, sizeof below, "%s/brig-attempt", path);
        snprintf(away, sizeof away, "%s-brig-attempt", path);
        struct stat status;
        if (lstat(path, &status) != 0) {
            int refusal = failure(mkdir(path, 0700));
            if (!refusal) rmdir(path);
            tried(refusal);
            continue;
        }
        tried(S_ISDIR(status.st_mode) ? create_and_remove(below) : open_and_close(path, O_WRONLY));
        int refusal = failure(rename(path, away));
        if (!refusal && rename(away, path) != 0) found(away);
        tried(refusal);
    }
    return all_tried();
}

static int system_write(void) {
    static const char *const paths[] = {"/brig-attempt", "/etc/brig-attempt", "/usr/bin/brig-attempt", "/var/brig-attempt"};
    for (size_t i = 0; i < 4; i++) tried(create_and_remove(paths[i]));
    return all_tried();
}

enum { MOST_PLACES = 256, DEPTH_BELOW_MOUNT = 3 };

static char *places[MOST_PLACES];
static int place_count;

static bool accepts_a_file(const char *directory, dev_t device, int depth) {
    char path[4352];
    snprintf(path, sizeof path, "%s/.brig-attempt-%d", directory, (int) getpid());
    if (create_and_remove(path) == 0) return true;
    if (depth > DEPTH_BELOW_MOUNT) return false;
    DIR *entries = opendir(directory);
    if (!entries) return false;
    bool accepts = false;
    struct dirent *entry;
    while (!accepts && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, entry->d_name);
        struct stat status;
        if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_dev == device)
            accepts = accepts_a_file(path, device, depth + 1);
    }
    closedir(entries);
    return accepts;
}

static bool is_listed(char *const *list, int count, const char *path) {
    for (int i = 0; i < count; i++)
        if (strcmp(list[i], path) == 0) return true;
    return false;
}

/* Tries to make a file in a directory of every mount; those on one mount are one answer. */
static void try_mount(const struct mount_point *mount) {
    static const char *const kernels_own[] = {"proc", "sysfs", "cgroup", "cgroup2", "devpts"};
    for (size_t i = 0; i < 5; i++)
        if (strcmp(mount->type, kernels_own[i]) == 0) return;
    struct stat status;
    if (stat(mount->path, &status) != 0 || !S_ISDIR(status.st_mode)) return;
    if (place_count < MOST_PLACES && !is_listed(places, place_count, mount->path) &&
        accepts_a_file(mount->path, status.st_dev, 0))
        places[place_count++] = strdup(mount->path);
}

static int writable_places(void) {
    need("writable");
    each_mount(try_mount);
    for (int i = 0; i < place_count; i++) {
        const char *expected = NULL;
        for (int k = 0; (expected = given("writable", k)) && strcmp(expected, places[i]) != 0; k++) continue;
        if (!expected) found(places[i]);
    }
    return all_found();
}

static int no_longer_writable(void) {
    each_mount(try_mount);
    const char *expected;
    for (int i = 0; (expected = given("writable", i)); i++)
        if (*expected && !is_listed(places, place_count, expected)) found(expected);
    return all_found();
}

static void note_shared(const struct mount_point *mount) {
    if (mount->is_shared) found(mount->path);
}

static int mount_propagation(void) {
    each_mount(note_shared);
    return all_found();
}

const struct attempt file_attempts[] = {
    {.name = "device-in-workspace", .run = device_in_workspace},
    {.name = "workspace-change", .run = workspace_change},
    {.name = "protected-names", .run = protected_names},
    {.name = "system-write", .run = system_write},
    {.name = "writable-places", .run = writable_places},
    {.name = "places-that-stopped-being-writable", .run = no_longer_writable},
    {.name = "mount-propagation", .run = mount_propagation},
    {0},
};
