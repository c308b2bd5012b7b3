/* Tests of copies from a tree that others change meanwhile, on file systems with and without copy_file_range(2). */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The errno of copy_file_range(2) on a file system that does not have it; 0 for one that does. */
static int cannot_copy;
/* Another process does this just before the first bytes are copied. */
static void (*before_copy)(void);

static long call_of_copy(long number, int from, int64_t *in, int to, int64_t *out, size_t size, unsigned flags) {
    if (before_copy) before_copy();
    before_copy = NULL;
    errno = cannot_copy;
    return cannot_copy ? -1 : syscall(number, from, in, to, out, size, flags);
}
/* The next calls of pwrite(2) do this, one after the other: they fail with an errno, or for 0 write a single byte. All later ones write everything. */
static int write_errors[4], writes;

static ssize_t write_of_copy(int fd, const void *from, size_t size, off_t at) {
    if (writes == 4) return pwrite(fd, from, size, at);
    errno = write_errors[writes++];
    return errno ? -1 : pwrite(fd, from, 1, at);
}
/* The source is included, so that tests can act just before it copies. */
#define syscall call_of_copy
#define pwrite write_of_copy
#include "../../../runner-files/copy-content.c"
#undef syscall
#undef pwrite
#include "../../../runner-files/copy.h"
#include "../../../common/job.h"
#include "../../../runner-files/file-protocol.h"
#include "../../../common/wire.h"
#include "root.h"

static uint8_t second[1 << 20], answer[RESULT_MAX], states[1 << 18];
static size_t second_size;
static ssize_t states_size;
static uint32_t cancelled;

static void begin(void) {
    empty_root();
    REQUIRE(mkdir(in_root("from"), 0755) == 0 && mkdir(in_root("from/d"), 0755) == 0 && mkdir(in_root("to"), 0755) == 0 && mkdir(in_root("to/d"), 0755) == 0);
    put_file("from/a", "new a");
    put_file("from/d/x", "new x");
    put_file("to/a", "old a");
    cannot_copy = 0;
    writes = 4;
    before_copy = NULL;
    cancelled = 0;
    snprintf((char *)second, sizeof second, "%s/from", root);
    second_size = strlen((const char *)second) + 1;
}

static uint8_t *add_record(uint8_t action, const char *path, uint64_t size) {
    uint8_t *at = second + second_size;
    memset(at, 0, COMMIT_RECORD_BYTES);
    at[0] = action;
    put32(at + 8, 0644);
    put32(at + 12, UINT32_MAX);
    put32(at + 16, UINT32_MAX);
    put32(at + 20, (uint32_t)strlen(path));
    put64(at + 32, 1000000000);
    put64(at + 48, size);
    memcpy(at + COMMIT_RECORD_BYTES, path, strlen(path));
    second_size += COMMIT_RECORD_BYTES + strlen(path);
    return at;
}

static uint32_t copy(uint64_t most_bytes) {
    int stream = memfd_create("states", MFD_CLOEXEC);
    REQUIRE(stream >= 0);
    const char *to = in_root("to");
    struct file_request request = {.length = most_bytes, .path = (const uint8_t *)to, .path_length = (uint32_t)strlen(to)};
    request.second = second;
    request.second_length = (uint32_t)second_size;
    struct file_job job = {.stream = stream, .cancelled = &cancelled};
    struct file_result result = {.bytes = answer};
    size_t before = count_in("/proc/self/fd");
    memset(states, 0, sizeof states);
    memset(answer, 0xee, sizeof answer);
    uint32_t error = copy_run(&job, &request, &result);
    states_size = pread(stream, states, sizeof states, 0);
    REQUIRE(result.length == COPY_RESULT_BYTES && get32(answer + 12) == 0 && states_size >= 0 && count_in("/proc/self/fd") == before);
    close(stream);
    return error;
}

static bool is_state_of(const uint8_t *state, const char *path) {
    struct stat st;
    REQUIRE(lstat(in_root(path), &st) == 0);
    int64_t changed = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    return state[0] == COPY_DONE && get64(state + 8) == st.st_ino && get64(state + 16) == (uint64_t)st.st_size && (int64_t)get64(state + 24) == changed;
}

static void a_copy_says_how_each_file_is_now(void) {
    begin();
    add_record(COMMIT_PUT, "a", 100);
    add_record(COMMIT_PUT, "d/gone", 100);
    add_record(COMMIT_PUT, "d/x", 100);
    REQUIRE(copy(1000) == 0 && get64(answer) == 10 && get32(answer + 8) == UINT32_MAX);
    REQUIRE(is_state_of(states, "to/a") && states[COPY_STATE_BYTES] == COPY_LEFT_OUT && is_state_of(states + 2 * COPY_STATE_BYTES, "to/d/x"));
    require_file("to/a", "new a");
    require_file("to/d/x", "new x");
    REQUIRE(count_in(in_root("to")) == 4);
}

static void a_file_system_that_cannot_copy_has_it_done_by_hand(void) {
    const int errors[] = {ENOSYS, EXDEV, EOPNOTSUPP, EINVAL, EPERM};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        begin();
        cannot_copy = errors[i];
        add_record(COMMIT_PUT, "a", 3);
        REQUIRE(copy(1000) == 0 && get64(answer) == 3);
        require_file("to/a", "new");
    }
}

static void a_copy_by_hand_is_whole_whatever_interrupts_it(void) {
    static const int orders[][4] = {{EINTR, EINTR, EINTR, EINTR}, {0, EINTR, 0, EINTR}, {0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        begin();
        cannot_copy = EXDEV;
        memcpy(write_errors, orders[i], sizeof write_errors);
        writes = 0;
        add_record(COMMIT_PUT, "a", 100);
        REQUIRE(copy(1000) == 0 && get64(answer) == 5 && writes == 4);
        require_file("to/a", "new a");
    }
    begin();
    cannot_copy = EXDEV;
    write_errors[1] = EIO;
    writes = 0;
    add_record(COMMIT_PUT, "a", 100);
    REQUIRE(copy(1000) == EIO);
    require_file("to/a", "old a");
}

/* The copy of a file with data at its beginning and in its middle has no more than these data on the disk. */
static void a_hole_stays_a_hole(void) {
    struct stat st;
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        begin();
        cannot_copy = by_hand ? EXDEV : 0;
        int fd = open(in_root("from/a"), O_WRONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && pwrite(fd, "x", 1, 4 << 20) == 1 && ftruncate(fd, 8 << 20) == 0 && close(fd) == 0);
        add_record(COMMIT_PUT, "a", 8 << 20);
        REQUIRE(copy(16 << 20) == 0 && stat(in_root("from/a"), &st) == 0);
        blkcnt_t blocks = st.st_blocks;
        REQUIRE(stat(in_root("to/a"), &st) == 0 && st.st_size == 8 << 20 && st.st_blocks <= blocks);
        char command[300];
        snprintf(command, sizeof command, "cmp %s %s", in_root("from/a"), in_root("to/a"));
        REQUIRE(system(command) == 0);
    }
}

static void a_disk_that_is_full_is_an_error(void) {
    begin();
    cannot_copy = ENOSPC;
    add_record(COMMIT_MKDIR, "0", 0);
    add_record(COMMIT_PUT, "a", 100);
    REQUIRE(copy(1000) == ENOSPC && get32(answer + 8) == 1);
    require_file("to/a", "old a");
}

static void cut_a(void) { REQUIRE(truncate(in_root("from/a"), 2) == 0); }
static void grow_a(void) { REQUIRE(truncate(in_root("from/a"), 1 << 20) == 0); }
static void replace_a(void) { REQUIRE(unlink(in_root("from/a")) == 0 && mkfifo(in_root("from/a"), 0600) == 0); }

static void what_others_do_to_a_file_meanwhile_neither_fails_nor_goes_on(void) {
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        void (*const ways[])(void) = {cut_a, grow_a, replace_a};
        const char *const expected[] = {"ne", "new a", "new a"};
        for (int i = 0; i < 3; i++) {
            begin();
            cannot_copy = by_hand ? EXDEV : 0;
            before_copy = ways[i];
            add_record(COMMIT_PUT, "a", 1 << 21);
            REQUIRE(copy(1 << 22) == 0);
            require_file("to/a", expected[i]);
        }
    }
}

static void a_fifo_is_not_opened(void) {
    begin();
    replace_a();
    add_record(COMMIT_PUT, "a", 100);
    REQUIRE(copy(1000) == 0 && states[0] == COPY_LEFT_OUT);
    /* Nobody reads it, and nobody has. */
    REQUIRE(open(in_root("from/a"), O_WRONLY | O_NONBLOCK) < 0 && errno == ENXIO);
    require_file("to/a", "old a");
}

/* A copy removes whatever has the name there, unless it is a directory that is to be one. */
static void a_copy_replaces_what_is_there(void) {
    begin();
    REQUIRE(unlink(in_root("to/a")) == 0 && mkdir(in_root("to/a"), 0700) == 0 && mkdir(in_root("from/e"), 0700) == 0);
    put_file("to/a/below", "x");
    put_file("to/e", "x");
    put_file("to/d/stays", "x");
    put_file("to/gone", "x");
    REQUIRE(symlink("nowhere", in_root("to/z")) == 0);
    put_file("from/z", "z");
    add_record(COMMIT_PUT, "a", 100);
    add_record(COMMIT_MKDIR, "d", 0);
    add_record(COMMIT_MKDIR, "e", 0);
    add_record(COMMIT_REMOVE, "gone", 0);
    add_record(COMMIT_REMOVE, "nothing/here", 0);
    add_record(COMMIT_PUT, "z", 100);
    REQUIRE(copy(1000) == 0 && get32(answer + 8) == UINT32_MAX);
    require_file("to/a", "new a");
    require_file("to/d/stays", "x");
    require_file("to/z", "z");
    REQUIRE(count_in(in_root("to/e")) == 2 && access(in_root("to/gone"), F_OK) != 0 && access(in_root("to/nowhere"), F_OK) != 0);
}

static void cancel(void) { cancelled = 1; }

static void a_copy_that_nobody_wants_any_more_ends_and_leaves_nothing_open(void) {
    begin();
    size_t before = count_in("/proc/self/fd");
    put_file("from/b", "b");
    before_copy = cancel;
    add_record(COMMIT_PUT, "a", 100);
    add_record(COMMIT_PUT, "b", 100);
    REQUIRE(copy(1000) == ECANCELED && get32(answer + 8) == 1);
    REQUIRE(count_in(in_root("to")) == 4 && count_in("/proc/self/fd") == before);
}

static void a_request_that_is_wrong_changes_nothing(void) {
    begin();
    second_size--;
    REQUIRE(copy(1000) == EINVAL);
    for (size_t at = 0; at < COMMIT_RECORD_BYTES; at++) {
        if (at > 3 && at != 10 && at != 20 && at != 24 && at != 28 && at != 55) continue;
        begin();
        add_record(COMMIT_PUT, "a", 100)[at] = 0xee;
        /* The type of what is expected means nothing without an expectation, but it is no type either. */
        REQUIRE(copy(1000) == EINVAL);
        require_file("to/a", "old a");
    }
    begin();
    add_record(COMMIT_CHECK, "a", 0);
    REQUIRE(copy(1000) == EINVAL);
    begin();
    add_record(COMMIT_PUT, ".brig-stage-1", 0);
    REQUIRE(copy(1000) == EINVAL);
    begin();
    add_record(COMMIT_PUT, "a", 0)[1] = EXPECT_ABSENT;
    REQUIRE(copy(1000) == EINVAL);
}

/* The limit counts the bytes of all files together. */
static void no_more_is_copied_than_was_allowed(void) {
    for (uint64_t less = 0; less < 2; less++) {
        begin();
        put_file("from/b", "12345");
        add_record(COMMIT_PUT, "a", 5);
        add_record(COMMIT_PUT, "b", 5);
        REQUIRE(copy(10 - less) == (less ? EFBIG : 0) && get64(answer) == (less ? 5 : 10) && get32(answer + 8) == (less ? 1 : UINT32_MAX));
        require_file("to/a", "new a");
        REQUIRE((access(in_root("to/b"), F_OK) == 0) == !less && count_in(in_root("to")) == (less ? 4 : 5));
    }
    static const uint64_t sizes[] = {0, 1, 4, 5, 6, INT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin();
        add_record(COMMIT_PUT, "a", sizes[i]);
        uint64_t copied = sizes[i] < 5 ? sizes[i] : 5;
        char text[8] = "new a";
        text[copied] = 0;
        REQUIRE(copy(5) == 0 && get64(answer) == copied);
        require_file("to/a", text);
    }
    begin();
    add_record(COMMIT_PUT, "a", (uint64_t)INT64_MAX + 1);
    REQUIRE(copy(5) == EINVAL);
}

static void there_is_a_state_for_each_record_however_many_there_are(void) {
    char name[16];
    for (size_t count = 2047; count <= 4097; count += count == 2049 ? 2046 : 1) {
        begin();
        for (size_t i = 0; i + 1 < count; i++) {
            snprintf(name, sizeof name, "%05u", (unsigned)i);
            add_record(COMMIT_REMOVE, name, 0);
        }
        add_record(COMMIT_PUT, "a", 100);
        REQUIRE(copy(1000) == 0 && states_size == (ssize_t)(count * COPY_STATE_BYTES) && is_state_of(states + (count - 1) * COPY_STATE_BYTES, "to/a"));
        for (size_t i = 0; i + 1 < count; i++) {
            static const uint8_t expected[COPY_STATE_BYTES] = {COPY_DONE};
            REQUIRE(memcmp(states + i * COPY_STATE_BYTES, expected, COPY_STATE_BYTES) == 0);
        }
    }
}

static void require_like(const char *name, mode_t mode, uid_t uid, gid_t gid, time_t seconds) {
    struct stat st;
    REQUIRE(lstat(in_root(name), &st) == 0 && st.st_mode == mode && st.st_uid == uid && st.st_gid == gid && st.st_mtim.tv_sec == seconds);
}

static void set_attributes(uint8_t *at, uint32_t mode, uint32_t uid, uint32_t gid, uint64_t seconds) {
    put32(at + 8, mode);
    put32(at + 12, uid);
    put32(at + 16, gid);
    put64(at + 32, seconds * 1000000000);
}

static void add_link(const char *path, const char *target) {
    uint8_t *at = add_record(COMMIT_SYMLINK, path, 0);
    put32(at + 24, (uint32_t)strlen(target));
    memcpy(second + second_size, target, strlen(target));
    second_size += strlen(target);
    set_attributes(at, 0, 7, 8, 9);
}

static void a_copy_has_the_owner_the_mode_and_the_time_that_were_asked_for(void) {
    char target[16] = "";
    begin();
    REQUIRE(mkdir(in_root("to/l"), 0700) == 0 && mkdir(in_root("to/l/below"), 0700) == 0 && symlink("d", in_root("to/n")) == 0);
    put_file("from/g", "g");
    set_attributes(add_record(COMMIT_PUT, "a", 100), 06755, 5, 6, 3);
    set_attributes(add_record(COMMIT_MKDIR, "d", 0), 01700, UINT32_MAX, UINT32_MAX, 4);
    set_attributes(add_record(COMMIT_PUT, "d/x", 100), 0, UINT32_MAX, 11, 5);
    set_attributes(add_record(COMMIT_PUT, "g", 100), 0777, UINT32_MAX, UINT32_MAX, 6);
    add_link("l", "over/there");
    set_attributes(add_record(COMMIT_MKDIR, "n", 0), 0, 12, 13, 10);
    add_record(COMMIT_MKDIR, "n/m", 0);
    REQUIRE(copy(1000) == 0);
    require_like("to/a", S_IFREG | 06755, 5, 6, 3);
    require_like("to/d", S_IFDIR | 01700, 0, 0, 4);
    require_like("to/d/x", S_IFREG, 0, 11, 5);
    require_like("to/g", S_IFREG | 0777, 0, 0, 6);
    require_like("to/l", S_IFLNK | 0777, 7, 8, 9);
    require_like("to/n", S_IFDIR, 12, 13, 10);
    REQUIRE(readlink(in_root("to/l"), target, sizeof target) == 10 && strcmp(target, "over/there") == 0 && access(in_root("to/n/m"), F_OK) == 0);
    REQUIRE(is_state_of(states, "to/a") && is_state_of(states + 4 * COPY_STATE_BYTES, "to/l") && get64(states + COPY_STATE_BYTES + 8) == 0);
}

/* Otherwise a change right after the copy could have the same time as the copy, and would not be noticed. */
static void time_has_gone_on_when_a_copy_ends(void) {
    struct timespec now;
    for (int i = 0; i < 5; i++) {
        begin();
        add_record(COMMIT_PUT, "a", 100);
        add_record(COMMIT_PUT, "d/x", 100);
        REQUIRE(copy(1000) == 0 && clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0);
        for (unsigned k = 0; k < 2; k++) REQUIRE(now.tv_sec * INT64_C(1000000000) + now.tv_nsec > (int64_t)get64(states + k * COPY_STATE_BYTES + 24));
    }
}

static void what_has_gone_from_the_first_tree_is_left_out_and_the_second_stays(void) {
    begin();
    REQUIRE(symlink("d", in_root("from/l")) == 0 && symlink("a", in_root("from/to-a")) == 0);
    put_file("to/l", "l");
    put_file("to/to-a", "to-a");
    add_record(COMMIT_PUT, "d", 100);
    add_record(COMMIT_PUT, "to-a", 100);
    REQUIRE(copy(1000) == 0 && states[0] == COPY_LEFT_OUT && states[COPY_STATE_BYTES] == COPY_LEFT_OUT && get64(answer) == 0);
    require_file("to/to-a", "to-a");
    static const char *const paths[] = {"a/x", "l/x", "nowhere/x"};
    for (int i = 0; i < 3; i++) {
        begin();
        REQUIRE(symlink("d", in_root("from/l")) == 0 && unlink(in_root("to/a")) == 0);
        REQUIRE(mkdir(in_root("to/a"), 0700) == 0 && mkdir(in_root("to/l"), 0700) == 0 && mkdir(in_root("to/nowhere"), 0700) == 0);
        add_record(COMMIT_PUT, paths[i], 100);
        REQUIRE(copy(1000) == 0 && states[0] == COPY_LEFT_OUT && get64(states + 8) == 0);
    }
    /* The directory that a file is copied into has to exist. */
    begin();
    add_record(COMMIT_PUT, "a", 100);
    add_record(COMMIT_PUT, "nowhere/x", 100);
    REQUIRE(copy(1000) == ENOENT && get32(answer + 8) == 1 && count_in(in_root("to")) == 4);
}

static void both_trees_are_directories(void) {
    static const char *const names[] = {"nowhere", "link", "a"};
    for (int i = 0; i < 6; i++) {
        begin();
        put_file("a", "a");
        REQUIRE(symlink("from", in_root("link")) == 0);
        if (i < 3) snprintf((char *)second, sizeof second, "%s", in_root(names[i]));
        else REQUIRE(rename(in_root("to"), in_root("moved")) == 0);
        if (i == 4) REQUIRE(symlink("moved", in_root("to")) == 0);
        if (i == 5) put_file("to", "");
        second_size = strlen((const char *)second) + 1;
        REQUIRE(copy(1000) == (i % 3 ? ENOTDIR : ENOENT) && get32(answer + 8) == UINT32_MAX && states_size == 0);
    }
    begin();
    memset(second, '/', PATH_MAX);
    memcpy(second, in_root("from"), strlen(in_root("from")));
    second[PATH_MAX] = 0;
    second_size = PATH_MAX + 1;
    REQUIRE(copy(1000) == ENAMETOOLONG);
    second[PATH_MAX - 1] = 0;
    second_size = PATH_MAX;
    REQUIRE(copy(1000) == 0 && states_size == 0);
    second_size = 0;
    REQUIRE(copy(1000) == EINVAL);
}

int main(void) {
    snprintf(root, sizeof root, "/tmp/copies.%d", (int)getpid());
    RUN(a_copy_says_how_each_file_is_now);
    RUN(a_file_system_that_cannot_copy_has_it_done_by_hand);
    RUN(a_copy_by_hand_is_whole_whatever_interrupts_it);
    RUN(a_hole_stays_a_hole);
    RUN(a_disk_that_is_full_is_an_error);
    RUN(what_others_do_to_a_file_meanwhile_neither_fails_nor_goes_on);
    RUN(a_copy_replaces_what_is_there);
    RUN(a_fifo_is_not_opened);
    RUN(a_copy_that_nobody_wants_any_more_ends_and_leaves_nothing_open);
    RUN(a_request_that_is_wrong_changes_nothing);
    RUN(no_more_is_copied_than_was_allowed);
    RUN(there_is_a_state_for_each_record_however_many_there_are);
    RUN(a_copy_has_the_owner_the_mode_and_the_time_that_were_asked_for);
    RUN(time_has_gone_on_when_a_copy_ends);
    RUN(what_has_gone_from_the_first_tree_is_left_out_and_the_second_stays);
    RUN(both_trees_are_directories);
    return 0;
}
