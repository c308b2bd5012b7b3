/* The file systems that commands can write to, and whether they are full. */
#ifndef BRIG_ROOMS_H
#define BRIG_ROOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOMS_MAX 24
#define ROOM_PATH_MAX 1024u

/* The resource that a file system has no more of. */
enum room_lack { LACKS_NOTHING, LACKS_BYTES, LACKS_FILES };

struct room {
    char *path; /* of its first directory that may be written to */
    uint64_t device;
    int fd;
    bool is_in_memory;
    /* The state in which the last command found it, if it was full. */
    uint64_t free_files;
    struct { int64_t s, ns; } changed;
};

struct rooms {
    struct room list[ROOMS_MAX];
    int count;
};

/*
 * Reads a mountinfo of the kernel, which ends with NUL; its text is changed. File systems of another machine or of a program are left
 * out, since asking how full they are may take for ever.
 */
void rooms_parse(struct rooms *rooms, char *mountinfo);
void rooms_open(struct rooms *rooms);

/* `*total` is the whole amount of the lacking resource. */
enum room_lack room_lack(const struct room *room, uint64_t *total);

/* These remember the number of files and the last change, and tell whether something was made or removed there since. */
void room_note(struct room *room);
bool room_has_changed(const struct room *room);

#endif
