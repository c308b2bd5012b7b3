#define _GNU_SOURCE
#include "rooms.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/*
 * A disk keeps its last bytes for its own records, and frees the room that it had set aside for a refused write. Memory is used up
 * to the last byte.
 */
#define TOO_LITTLE_ON_DISK (1u << 20)

static const char *const on_disk[] = {"ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs", "bcachefs", "overlay"};

static bool is_on_disk(const char *type) {
    for (size_t i = 0; i < sizeof on_disk / sizeof *on_disk; i++)
        if (strcmp(on_disk[i], type) == 0) return true;
    return false;
}

static bool is_octal(const char *digits) {
    return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' && digits[2] >= '0' && digits[2] <= '7';
}

/* The kernel writes spaces, tabs, line breaks and backslashes of a path as \ooo. */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && is_octal(from + 1)) {
            *to = (char)((unsigned char)(from[1] - '0') * 64 + (unsigned char)(from[2] - '0') * 8 + (unsigned char)(from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
}

static bool has_option(const char *options, const char *wanted) {
    size_t length = strlen(wanted);
    for (const char *at = options; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, wanted, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
    }
    return false;
}

static bool is_of_the_kernel(const char *path) {
    static const char *const below[] = {"/proc", "/sys", "/dev/pts", "/dev/mqueue"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        size_t length = strlen(below[i]);
        if (strncmp(path, below[i], length) == 0 && (path[length] == '/' || path[length] == 0)) return true;
    }
    return false;
}

/* "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static void take_mount(struct rooms *rooms, char *line) {
    unsigned major, minor;
    int path_at = 0, path_end = 0, options_end = 0;
    if (sscanf(line, "%*s %*s %u:%u %*s %n%*s%n %*s%n", &major, &minor, &path_at, &path_end, &options_end) != 2 || !options_end) return;
    char *path = line + path_at, *options = line + path_end + 1, *type = strstr(line + options_end, " - ");
    if (!type) return;
    type += 3;
    type[strcspn(type, " ")] = 0;
    line[path_end] = line[options_end] = 0;
    unescape(path);
    bool is_in_memory = strcmp(type, "tmpfs") == 0;
    if (!has_option(options, "rw") || (!is_in_memory && !is_on_disk(type))) return;
    size_t length = strlen(path);
    if (rooms->count == ROOMS_MAX || length > ROOM_PATH_MAX || *path != '/' || is_of_the_kernel(path)) return;
    uint64_t device = (uint64_t)major << 32 | minor;
    char *kept = malloc(length + 1);
    if (!kept) return;
    memcpy(kept, path, length + 1);
    rooms->list[rooms->count++] = (struct room){.path = kept, .device = device, .fd = -1, .is_in_memory = is_in_memory};
}

void rooms_parse(struct rooms *rooms, char *mountinfo) {
    for (char *line = mountinfo, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        take_mount(rooms, line);
    }
}

/* A second mount may hide an earlier one at its path, so this checks that the intended file system was opened. */
static bool open_room(struct room *room) {
    struct stat st;
    room->fd = open(room->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (room->fd < 0) return false;
    bool is_known = fstat(room->fd, &st) == 0;
    if (is_known && ((uint64_t)major(st.st_dev) << 32 | minor(st.st_dev)) == room->device) return true;
    close(room->fd);
    return false;
}

static bool is_known(const struct rooms *rooms, uint64_t device) {
    for (int i = 0; i < rooms->count; i++)
        if (rooms->list[i].device == device) return true;
    return false;
}

void rooms_open(struct rooms *rooms) {
    struct rooms found = {.count = 0};
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *text = NULL;
    size_t size = 0;
    if (!file) return;
    if (getdelim(&text, &size, 0, file) > 0) rooms_parse(&found, text);
    free(text);
    fclose(file);
    for (int i = 0; i < found.count; i++) {
        struct room *room = &found.list[i];
        if (!is_known(rooms, room->device) && open_room(room)) rooms->list[rooms->count++] = *room;
        else free(room->path);
    }
}

enum room_lack room_lack(const struct room *room, uint64_t *total) {
    struct statfs fs;
    if (room->fd < 0 || fstatfs(room->fd, &fs) != 0) return LACKS_NOTHING;
    uint64_t block = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
    uint64_t too_little = room->is_in_memory ? block : TOO_LITTLE_ON_DISK;
    /* A file system without a limit says zero for both. */
    if (fs.f_blocks > 0 && fs.f_bavail * block < too_little) {
        *total = fs.f_blocks * block;
        return LACKS_BYTES;
    }
    if (fs.f_files == 0 || fs.f_ffree > 0) return LACKS_NOTHING;
    *total = fs.f_files;
    return LACKS_FILES;
}

static bool look(const struct room *room, struct room *out) {
    struct statfs fs;
    struct stat st;
    if (fstatfs(room->fd, &fs) != 0 || fstat(room->fd, &st) != 0) return false;
    out->free_files = fs.f_ffree;
    out->changed.s = st.st_ctim.tv_sec;
    out->changed.ns = st.st_ctim.tv_nsec;
    return true;
}

void room_note(struct room *room) { look(room, room); }

bool room_has_changed(const struct room *room) {
    struct room now = *room;
    if (!look(room, &now)) return false;
    return now.free_files != room->free_files || now.changed.s != room->changed.s || now.changed.ns != room->changed.ns;
}
