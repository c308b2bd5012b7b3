/* Tests of what is known of file systems: which of them commands can write to, and whether those are full. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statfs.h>

/* The answer of statfs instead of the truth, or NULL for the truth. */
static struct statfs *pretended;

static int statfs_here(int fd, struct statfs *fs) {
    int failed = fstatfs(fd, fs);
    if (pretended) *fs = *pretended;
    return failed;
}

/* How many more calls of malloc succeed before the others fail. All succeed if it is negative. */
static int memory_left = -1;

static void *malloc_here(size_t size) {
    if (memory_left == 0) return NULL;
    memory_left -= memory_left > 0;
    return malloc(size);
}

#define fstatfs statfs_here
#define malloc malloc_here
#include "../../rooms.c"
#undef fstatfs
#undef malloc
#include "root.h"

/* ---- lines of mountinfo ----------------------------------------------------------------------------------------------- */

static struct rooms found;

static void forget(void) {
    for (int i = 0; i < found.count; i++) {
        free(found.list[i].path);
        if (found.list[i].fd >= 0) close(found.list[i].fd);
    }
    found.count = 0;
}

/* Parses lines of mountinfo. Returns how many file systems were found that a command can fill. */
static int parse(const char *lines) {
    static char text[16384];
    forget();
    snprintf(text, sizeof text, "%s", lines);
    rooms_parse(&found, text);
    return found.count;
}

static bool is_room(const char *path, const char *type, const char *options) {
    char line[4096];
    snprintf(line, sizeof line, "36 35 98:3 / %s %s master:1 - %s /dev/x rw\n", path, options, type);
    return parse(line) == 1;
}

static void only_some_kinds_of_file_systems_are_rooms(void) {
    static const char *const kinds[] = {"ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs", "bcachefs", "overlay", "tmpfs"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        REQUIRE(is_room("/x", kinds[i], "rw,relatime"));
        const struct room *room = &found.list[0];
        REQUIRE(room->is_in_memory == (strcmp(kinds[i], "tmpfs") == 0) && room->fd == -1 && room->device == (UINT64_C(98) << 32 | 3) && strcmp(room->path, "/x") == 0);
    }
    static const char *const others[] = {"nfs4", "fuse.x", "proc", "ext", "ext44", "9p", "ramfs", "xtmpfs", "tmpfsx"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) REQUIRE(!is_room("/x", others[i], "rw"));
}

static void a_room_can_be_written_to(void) {
    static const char *const yes[] = {"rw", "rw,relatime", "nosuid,rw", "nosuid,rw,nodev"};
    static const char *const no[] = {"ro", "relatime", "rwx", "xrw", "nosuid,rwx", "r,w", "nosuid,xrw,ro"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) REQUIRE(is_room("/x", "ext4", yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) REQUIRE(!is_room("/x", "ext4", no[i]));
}

static void what_the_kernel_shows_of_itself_is_no_room(void) {
    static const char *const no[] = {"/proc", "/proc/x", "/sys", "/sys/fs/cgroup", "/dev/pts", "/dev/pts/x", "/dev/mqueue"};
    static const char *const yes[] = {"/", "/process", "/system", "/dev", "/dev/shm", "/dev/ptsx", "/x/proc"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) REQUIRE(!is_room(no[i], "tmpfs", "rw"));
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) REQUIRE(is_room(yes[i], "tmpfs", "rw"));
    REQUIRE(!is_room("x", "tmpfs", "rw"));
}

static void require_path(const char *written, const char *path) {
    REQUIRE(is_room(written, "ext4", "rw") && strcmp(found.list[0].path, path) == 0);
}

static void a_path_is_written_with_numbers_of_characters(void) {
    require_path("/a\\040b", "/a b");
    require_path("/\\011\\012\\134x", "/\t\n\\x");
    require_path("/\\000x", "/");
    require_path("/\\377", "/\377");
    require_path("/\\777", "/\\777");
    require_path("/\\400", "/\\400");
    require_path("/\\3a7", "/\\3a7");
    require_path("/\\080", "/\\080");
    require_path("/\\008", "/\\008");
    require_path("/\\0/7", "/\\0/7");
    require_path("/\\00/", "/\\00/");
    require_path("/\\/07", "/\\/07");
    require_path("/end\\", "/end\\");
    require_path("/end\\04", "/end\\04");
}

static void a_path_is_as_long_as_it_may_be(void) {
    char path[ROOM_PATH_MAX + 2];
    memset(path, '/', sizeof path);
    path[ROOM_PATH_MAX + 1] = 0;
    REQUIRE(!is_room(path, "ext4", "rw"));
    path[ROOM_PATH_MAX] = 0;
    REQUIRE(is_room(path, "ext4", "rw") && strlen(found.list[0].path) == ROOM_PATH_MAX);
}

static void a_line_has_all_that_is_asked_of_it(void) {
    static const char *const wrong[] = {
        "", "\n", "36", "36 35 98:3 / /x", "36 35 98:3 / /x rw", "36 35 98 / /x rw - ext4 x rw", "36 35 a:3 / /x rw - ext4 x rw", "36 35 98:3 / /x rw -ext4 x rw", "36 35 98:3 / /x rw - ",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) REQUIRE(parse(wrong[i]) == 0);
    /* The last line needs no end, and what stands between the options and the kind may be nothing. */
    REQUIRE(parse("1 2 3:4 / /a rw - ext4 x rw\n1 2 3:5 / /b rw a:1 b:2 - tmpfs x rw\n\n1 2 3:6 / /c rw - xfs") == 3);
    REQUIRE(strcmp(found.list[0].path, "/a") == 0 && strcmp(found.list[1].path, "/b") == 0 && strcmp(found.list[2].path, "/c") == 0);
    REQUIRE(found.list[1].is_in_memory && !found.list[2].is_in_memory && found.list[2].device == (UINT64_C(3) << 32 | 6));
}

static void there_are_no_more_rooms_than_fit(void) {
    static char lines[8192];
    for (int more = -1; more <= 1; more++) {
        lines[0] = 0;
        for (int i = 0; i < ROOMS_MAX + more; i++) strcat(lines, "2 1 0:6 / /tmp rw - tmpfs tmpfs rw\n");
        REQUIRE(parse(lines) == (more < 0 ? ROOMS_MAX - 1 : ROOMS_MAX));
    }
}

/* ---- the file systems there are --------------------------------------------------------------------------------------- */

static void mount_on(const char *name, const char *options) {
    REQUIRE((mkdir(in_root(name), 0700) == 0 || errno == EEXIST) && mount("tmpfs", in_root(name), "tmpfs", 0, options) == 0);
}

static struct room *room_at(const char *name) {
    for (int i = 0; i < found.count; i++)
        if (strcmp(found.list[i].path, in_root(name)) == 0) return &found.list[i];
    return NULL;
}

static void each_file_system_is_opened_once_where_it_can_be_seen(void) {
    empty_root();
    mount_on("a", NULL);
    mount_on("hidden", NULL);
    mount_on("hidden", NULL);
    REQUIRE(mkdir(in_root("again"), 0700) == 0 && mount(in_root("a"), in_root("again"), NULL, MS_BIND, NULL) == 0);
    REQUIRE(mkdir(in_root("read-only"), 0700) == 0 && mount("tmpfs", in_root("read-only"), "tmpfs", MS_RDONLY, NULL) == 0);
    forget();
    rooms_open(&found);
    struct stat st, opened;
    REQUIRE(room_at("a") && !room_at("again") && !room_at("read-only") && stat(in_root("a"), &st) == 0);
    REQUIRE(fstat(room_at("a")->fd, &opened) == 0 && opened.st_dev == st.st_dev && opened.st_ino == st.st_ino && room_at("a")->is_in_memory);
    /* Only the one above of two at the same place. */
    int at_hidden = 0;
    REQUIRE(stat(in_root("hidden"), &st) == 0);
    for (int i = 0; i < found.count; i++) {
        REQUIRE(found.list[i].fd >= 0 && fstat(found.list[i].fd, &opened) == 0);
        REQUIRE(((uint64_t)major(opened.st_dev) << 32 | minor(opened.st_dev)) == found.list[i].device);
        if (strcmp(found.list[i].path, in_root("hidden")) == 0) at_hidden += opened.st_dev == st.st_dev ? 1 : 100;
    }
    REQUIRE(at_hidden == 1);
    int before = found.count;
    rooms_open(&found); /* all of them are known */
    REQUIRE(found.count == before);
    forget();
    static const char *const names[] = {"again", "a", "hidden", "hidden", "read-only"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) REQUIRE(umount(in_root(names[i])) == 0);
}

/* Fills a file up to so many bytes. Returns how many there is room for. */
static uint64_t fill(const char *name, uint64_t most) {
    static const char piece[512];
    uint64_t size = 0;
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    while (size < most && write(fd, piece, sizeof piece) == (ssize_t)sizeof piece) size += sizeof piece;
    close(fd);
    return size;
}

static void a_file_system_in_memory_is_full_when_not_even_one_block_is_left(void) {
    uint64_t total = 0;
    empty_root();
    mount_on("m", "size=64k,nr_inodes=8");
    struct room room = {.path = root, .fd = open(in_root("m"), O_PATH | O_DIRECTORY | O_CLOEXEC), .is_in_memory = true};
    REQUIRE(room.fd >= 0 && room_lack(&room, &total) == LACKS_NOTHING && total == 0);
    REQUIRE(fill("m/x", 60 << 10) == 60 << 10 && room_lack(&room, &total) == LACKS_NOTHING);
    REQUIRE(fill("m/x", 64 << 10) == 4 << 10 && room_lack(&room, &total) == LACKS_BYTES && total == 64 << 10);
    REQUIRE(unlink(in_root("m/x")) == 0 && room_lack(&room, &total) == LACKS_NOTHING);
    char name[8] = "m/0";
    for (; name[2] < '6'; name[2]++) put_file(name, "");
    REQUIRE(room_lack(&room, &total) == LACKS_NOTHING);
    put_file(name, "");
    REQUIRE(room_lack(&room, &total) == LACKS_FILES && total == 8);
    close(room.fd);
    REQUIRE(umount(in_root("m")) == 0);
}

static void a_disk_is_full_a_little_earlier_and_what_has_no_limit_never(void) {
    uint64_t total = 0;
    empty_root();
    struct statfs fs = {.f_bsize = 4096, .f_frsize = 1024, .f_blocks = 100000, .f_bavail = 1024, .f_files = 10, .f_ffree = 1};
    struct room disk = {.path = root, .fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)}, memory = disk, none = {.fd = -1};
    memory.is_in_memory = true;
    pretended = &fs;
    REQUIRE(room_lack(&disk, &total) == LACKS_NOTHING && room_lack(&none, &total) == LACKS_NOTHING);
    fs.f_bavail = 1023;
    REQUIRE(room_lack(&disk, &total) == LACKS_BYTES && total == 100000 * 1024 && room_lack(&memory, &total) == LACKS_NOTHING);
    fs.f_bavail = 0;
    REQUIRE(room_lack(&memory, &total) == LACKS_BYTES && room_lack(&none, &total) == LACKS_NOTHING);
    /* Without a size of fragments, blocks are counted in the size of blocks. */
    fs.f_frsize = 0;
    fs.f_bavail = 256;
    REQUIRE(room_lack(&disk, &total) == LACKS_NOTHING);
    fs.f_bavail = 255;
    REQUIRE(room_lack(&disk, &total) == LACKS_BYTES && total == 100000 * 4096);
    fs.f_blocks = 1;
    REQUIRE(room_lack(&disk, &total) == LACKS_BYTES && total == 4096);
    fs.f_blocks = fs.f_bavail = 0;
    REQUIRE(room_lack(&disk, &total) == LACKS_NOTHING);
    fs.f_ffree = 0;
    REQUIRE(room_lack(&disk, &total) == LACKS_FILES && total == 10);
    fs.f_files = 0;
    REQUIRE(room_lack(&disk, &total) == LACKS_NOTHING);
    pretended = NULL;
    close(disk.fd);
}

static void what_was_made_or_removed_is_noticed(void) {
    empty_root();
    mount_on("m", "nr_inodes=100");
    struct room room = {.path = root, .fd = open(in_root("m"), O_PATH | O_DIRECTORY | O_CLOEXEC)}, other;
    REQUIRE(mkdir(in_root("m/d"), 0700) == 0);
    room_note(&room);
    REQUIRE(!room_has_changed(&room) && room.free_files > 0 && room.changed.s > 0);
    put_file("m/d/x", "x"); /* which changes nothing of the first directory itself */
    REQUIRE(room_has_changed(&room));
    room_note(&room);
    REQUIRE(!room_has_changed(&room));
    for (int i = 0; i < 3; i++) {
        other = room;
        if (i == 0) other.free_files++;
        if (i == 1) other.changed.s++;
        if (i == 2) other.changed.ns++;
        REQUIRE(room_has_changed(&other));
    }
    close(room.fd);
    REQUIRE(!room_has_changed(&room) && umount(in_root("m")) == 0);
}

static void without_memory_the_others_are_known(void) {
    memory_left = 1;
    int count = parse("1 0 0:1 / /a rw - tmpfs a rw\n1 0 0:2 / /b rw - tmpfs b rw\n");
    memory_left = -1;
    REQUIRE(count == 1 && strcmp(found.list[0].path, "/a") == 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    REQUIRE(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    snprintf(root, sizeof root, "/tmp/brig-rooms-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(only_some_kinds_of_file_systems_are_rooms);
    RUN(a_room_can_be_written_to);
    RUN(what_the_kernel_shows_of_itself_is_no_room);
    RUN(a_path_is_written_with_numbers_of_characters);
    RUN(a_path_is_as_long_as_it_may_be);
    RUN(a_line_has_all_that_is_asked_of_it);
    RUN(there_are_no_more_rooms_than_fit);
    RUN(without_memory_the_others_are_known);
    RUN(each_file_system_is_opened_once_where_it_can_be_seen);
    RUN(a_file_system_in_memory_is_full_when_not_even_one_block_is_left);
    RUN(a_disk_is_full_a_little_earlier_and_what_has_no_limit_never);
    RUN(what_was_made_or_removed_is_noticed);
    forget();
    return 0;
}
