/* The file systems that commands can write to, and whether they are full. */
#ifndef BRIG_ROOMS_H
#define BRIG_ROOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOMS_MAX 24
#define ROOM_PATH_MAX 1024u

/* What a file system has no more of. */
enum room_lack { LACKS_NOTHING, LACKS_BYTES, LACKS_FILES };

struct room {
    char *path; /* of its first directory that may be written to */
    uint64_t device;
    int fd;
    bool is_in_memory;
    /* As the last command found it, if it was full. */
    uint64_t free_files;
    struct { int64_t s, ns; } changed;
};

struct rooms {
    struct room list[ROOMS_MAX];
    int count;
};

/*
 * Reads a mountinfo of the kernel, which ends with NUL and is changed by that. Left out is what is on another machine or served by a
 * program, since asking it how full it is may take for ever.
 */
void rooms_parse(struct rooms *rooms, char *mountinfo);
void rooms_open(struct rooms *rooms);

/* `*total` is how much of what is lacking there is at all. */
enum room_lack room_lack(const struct room *room, uint64_t *total);

/* Remembers what files there are, and whether that has changed: then something was made there, or removed. */
void room_note(struct room *room);
bool room_has_changed(const struct room *room);

#endif
