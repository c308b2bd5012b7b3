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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The errno of copy_file_range(2) on a file system that does not have it; 0 for one that does. */
static int cannot_copy;
/* What another process does just before the first bytes are copied. */
static void (*before_copy)(void);

static long call_of_copy(long number, int from, int64_t *in, int to, int64_t *out, size_t size, unsigned flags) {
    if (before_copy) before_copy();
    before_copy = NULL;
    errno = cannot_copy;
    return cannot_copy ? -1 : syscall(number, from, in, to, out, size, flags);
}
/* The source is included, so that tests can act just before it copies. */
#define syscall call_of_copy
#include "../../copy-content.c"
#undef syscall
#include "../../copy.h"
#include "../../job.h"
#include "../../protocol.h"
#include "../../wire.h"
#include "root.h"

static uint8_t second[4096], answer[RESULT_MAX], states[4096];
static size_t second_size;
static uint32_t cancelled;

static void begin(void) {
    empty_root();
    REQUIRE(mkdir(in_root("from"), 0755) == 0 && mkdir(in_root("from/d"), 0755) == 0 && mkdir(in_root("to"), 0755) == 0 && mkdir(in_root("to/d"), 0755) == 0);
    put_file("from/a", "new a");
    put_file("from/d/x", "new x");
    put_file("to/a", "old a");
    cannot_copy = 0;
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
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const char *to = in_root("to");
    struct file_request request = {.length = most_bytes, .path = (const uint8_t *)to, .path_length = (uint32_t)strlen(to)};
    request.second = second;
    request.second_length = (uint32_t)second_size;
    struct file_job job = {.stream = ends[1], .cancelled = &cancelled};
    struct file_result result = {.bytes = answer};
    memset(states, 0, sizeof states);
    uint32_t error = copy_run(&job, &request, &result);
    close(ends[1]);
    REQUIRE(result.length == COPY_RESULT_BYTES && read(ends[0], states, sizeof states) >= 0);
    close(ends[0]);
    return error;
}

static size_t count_in(const char *path) {
    DIR *directory = opendir(path);
    size_t count = 0;
    REQUIRE(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
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

/* Of a file with data at its beginning and in its middle, the copy has no more than that on the disk. */
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

/* What has the name there is removed, whatever it is, unless it is a directory that is to be one. */
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

int main(void) {
    snprintf(root, sizeof root, "/tmp/copies.%d", (int)getpid());
    RUN(a_copy_says_how_each_file_is_now);
    RUN(a_file_system_that_cannot_copy_has_it_done_by_hand);
    RUN(a_hole_stays_a_hole);
    RUN(a_disk_that_is_full_is_an_error);
    RUN(what_others_do_to_a_file_meanwhile_neither_fails_nor_goes_on);
    RUN(a_copy_replaces_what_is_there);
    RUN(a_fifo_is_not_opened);
    RUN(a_copy_that_nobody_wants_any_more_ends_and_leaves_nothing_open);
    RUN(a_request_that_is_wrong_changes_nothing);
    return 0;
}
