/* Tests of commits and comparisons while others change the files, and on file systems that lack an operation. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether to act like a file system that can neither exchange two files nor refuse to replace one. */
static bool is_simple_file_system;
/* Whether to act like an overlay, in which directories of the lower layer cannot be moved. */
static bool is_overlay;
/* Whether to act as if every name were on a file system of its own. */
static bool is_all_mounts;
/* Another process does this just before the rename of this number; 0 is the next rename, -1 is none. */
static int renames_until_then = -1;
static void (*before_rename)(void);
/* Another process does this just after the next piece of a file was read. */
static void (*after_read)(void);

static bool is_directory(int at, const char *name) {
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static long rename_here(int from, const char *name, int to, const char *new_name, unsigned flags) {
    if (renames_until_then-- == 0) before_rename();
    errno = EXDEV;
    if (is_all_mounts || (is_overlay && (is_directory(from, name) || is_directory(to, new_name)))) return -1;
    errno = EINVAL;
    return is_simple_file_system && flags != 0 ? -1 : syscall(SYS_renameat2, from, name, to, new_name, flags);
}

/* These sources are included, so that tests can act just before their renames and just after their reads. */
#include "../../../runner-files/commit-step.h"
static long call_of_step(long number, int from, const char *name, int to, const char *new_name, unsigned flags) {
    return number == SYS_renameat2 ? rename_here(from, name, to, new_name, flags) : -1;
}
#define syscall call_of_step
#include "../../../runner-files/commit-step.c"
#undef syscall

static ssize_t read_piece(int fd, void *to, size_t size, off_t at) {
    ssize_t n = pread(fd, to, size, at);
    if (after_read) after_read();
    after_read = NULL;
    return n;
}
#define pread read_piece
#include "../../../runner-files/same-content.c"
#undef pread
#include "../../../runner-files/beneath.c"
#include "../../../runner-files/commit.h"
#include "../../../runner-files/file-remove.h"
#include "../../../runner-files/file-stat.h"
#include "../../../common/job.h"
#include "../../../runner-files/file-protocol.h"
#include "../../../common/wire.h"
#include "root.h"

static const uint8_t key[COMMIT_KEY_BYTES] = {7};

/* Makes two files, a directory, and a stage with what is to replace them. */
static void fill_root(void) {
    empty_root();
    REQUIRE(mkdir(in_root("d"), 0700) == 0 && mkdir(in_root(".brig-stage-1"), 0700) == 0);
    put_file("a", "old a");
    put_file("b", "old b");
    put_file("d/x", "old x");
    put_file(".brig-stage-1/0", "new a");
    put_file(".brig-stage-1/1", "new b");
    put_file(".brig-stage-1/2", "new d");
}

static void require_as_before(void) {
    require_file("a", "old a");
    require_file("b", "old b");
    require_file("d/x", "old x");
}

static uint8_t records[1024], answer[RESULT_MAX];
static size_t records_size;

static void add_record(uint8_t action, uint32_t content, const char *path) {
    struct stat st;
    uint8_t *at = records + records_size;
    memset(at, 0, COMMIT_RECORD_BYTES);
    REQUIRE(lstat(in_root(path), &st) == 0);
    at[0] = action;
    at[1] = EXPECT_STATE;
    put32(at + 4, content);
    put32(at + 8, 0644);
    put32(at + 12, UINT32_MAX);
    put32(at + 16, UINT32_MAX);
    put32(at + 20, (uint32_t)strlen(path));
    put64(at + 32, (uint64_t)INT64_MIN);
    put64(at + 40, (uint64_t)st.st_ino);
    put64(at + 48, (uint64_t)st.st_size);
    put64(at + 56, (uint64_t)file_time(st.st_mtim));
    put64(at + 64, (uint64_t)file_time(st.st_ctim));
    memcpy(at + COMMIT_RECORD_BYTES, path, strlen(path));
    records_size += COMMIT_RECORD_BYTES + strlen(path);
}

static struct file_request request_for(const char *stage, uint8_t second[64]) {
    memcpy(second, key, sizeof key);
    memcpy(second + sizeof key, stage, strlen(stage));
    struct file_request request = {.path = (const uint8_t *)root, .path_length = (uint32_t)strlen(root), .second = second};
    request.second_length = (uint32_t)(sizeof key + strlen(stage));
    request.length = records_size;
    return request;
}

/* Commits the records, but only their first `sent` bytes arrive. */
static uint32_t commit(size_t sent) {
    uint8_t second[64];
    int ends[2];
    uint32_t cancelled = 1; /* A commit whose records have all arrived is not cancelled. */
    struct file_request request = request_for(".brig-stage-1", second);
    REQUIRE(pipe(ends) == 0 && write(ends[1], records, sent) == (ssize_t)sent && close(ends[1]) == 0);
    struct file_job job = {.stream = ends[0], .cancelled = &cancelled};
    struct file_result result = {.bytes = answer};
    uint32_t error = commit_run(&job, &request, &result);
    close(ends[0]);
    return error;
}

static void begin(void) {
    is_simple_file_system = is_overlay = is_all_mounts = false;
    renames_until_then = -1;
    fill_root();
    records_size = 0;
    add_record(COMMIT_PUT, 0, "a");
    add_record(COMMIT_REMOVE, 0, "b");
    add_record(COMMIT_PUT, 2, "d");
}

static void require_done(void) {
    require_file("a", "new a");
    require_file("d", "new d");
    REQUIRE(access(in_root("b"), F_OK) != 0 && access(in_root(".brig-stage-1"), F_OK) != 0);
}

static void a_commit_is_done_although_nobody_wants_it_any_more(void) {
    begin();
    REQUIRE(commit(records_size) == 0 && get32(answer) == 0 && get32(answer + 4) == 3 && get32(answer + 12) == 0);
    require_done();
}

static void a_commit_needs_neither_exchange_nor_noreplace(void) {
    begin();
    is_simple_file_system = true;
    REQUIRE(commit(records_size) == 0 && get32(answer) == 0 && get32(answer + 4) == 3);
    require_done();
}

static void records_that_are_cut_off_change_nothing(void) {
    begin();
    REQUIRE(commit(records_size - 1) == ECANCELED && commit(0) == ECANCELED);
    require_as_before();
}

static void records_that_are_wrong_change_nothing(void) {
    for (size_t at = 0; at < COMMIT_RECORD_BYTES; at++) {
        if (at != 0 && at != 1 && at != 3 && at != 10 && at != 20 && at != 24 && at != 28) continue;
        begin();
        records[at] = 0xee;
        REQUIRE(commit(records_size) == EINVAL);
        require_as_before();
    }
}

static void replace_d(void) { REQUIRE(rename(in_root("d"), in_root("mine")) == 0 && (put_file("d", "theirs"), true)); }
static void rewrite_b(void) { put_file("b", "theirs, longer"); }
static void rewrite_a(void) { put_file("a", "theirs, longer"); }
static void occupy_a(void) { put_file("a", "theirs"); }

static void require_conflict(uint32_t record, uint32_t reason) {
    REQUIRE(commit(records_size) == 0 && get32(answer) == 0 && get32(answer + 4) == 0 && get32(answer + 12) == 1);
    REQUIRE(get32(answer + 16) == record && get32(answer + 20) == reason);
    REQUIRE(access(in_root(".brig-stage-1"), F_OK) != 0);
    require_file("a", record == 0 ? "theirs" : "old a");
}

static void what_somebody_else_writes_at_the_last_moment_is_kept(void) {
    for (int simple = 0; simple < 2; simple++) {
        begin();
        is_simple_file_system = simple;
        before_rename = rewrite_b;
        renames_until_then = 1;
        require_conflict(1, CONFLICT_CHANGED);
        require_file("b", "theirs, longer");
        require_file("d/x", "old x");
        begin();
        is_simple_file_system = simple;
        before_rename = replace_d;
        renames_until_then = 2;
        require_conflict(2, CONFLICT_CHANGED);
        require_file("b", "old b");
        require_file("d", "theirs");
    }
}

static void what_is_on_another_file_system_is_a_conflict(void) {
    for (int removes = 0; removes < 2; removes++) {
        begin();
        is_all_mounts = true;
        if (removes) records_size = 0;
        if (removes) add_record(COMMIT_REMOVE, 0, "b");
        REQUIRE(commit(records_size) == 0 && get32(answer + 4) == 0 && get32(answer + 12) == 1 && get32(answer + 16) == 0 && get32(answer + 20) == CONFLICT_MOUNT);
        require_as_before();
    }
}

/* Nobody but the commit's own user can put something else into the stage. Were it so, it would be neither waited for nor followed. */
static void what_is_staged_has_to_be_a_file_of_its_own(void) {
    for (int kind = 0; kind < 5; kind++) {
        begin();
        const char *staged = in_root(".brig-stage-1/0");
        REQUIRE(unlink(staged) == 0);
        if (kind == 0) REQUIRE(symlink("../b", staged) == 0);
        if (kind == 1) REQUIRE(mkfifo(staged, 0600) == 0);
        if (kind == 2) REQUIRE(link(in_root("d/x"), staged) == 0);
        if (kind == 3) REQUIRE(mknod(staged, S_IFSOCK | 0600, 0) == 0);
        REQUIRE(commit(records_size) == EBADF && get32(answer + 4) == 0 && get32(answer + 8) == 0);
        require_as_before();
    }
}

/* Somebody has removed the new file after the exchange. If nothing is left of it in the stage either, an earlier undo was at its end. */
static void an_exchange_whose_new_file_is_gone_is_not_undone(void) {
    begin();
    struct commit_target target = {.parent = -1};
    target.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    target.stage = open(in_root(".brig-stage-1"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct step step = {.kind = STEP_EXCHANGE, .old_mode = NO_MODE, .old_ino = 1, .new_ino = 2, .staged = "0", .path = "a"};
    REQUIRE(target.root >= 0 && target.stage >= 0 && step_undo(&target, &step) == ESTALE);
    REQUIRE(unlink(in_root("a")) == 0 && step_undo(&target, &step) == ESTALE);
    REQUIRE(unlink(in_root(".brig-stage-1/0")) == 0 && step_undo(&target, &step) == 0);
    close(target.stage);
    close(target.root);
}

static void a_name_that_is_taken_at_the_last_moment_stays_theirs(void) {
    begin();
    REQUIRE(unlink(in_root("a")) == 0);
    records[1] = EXPECT_ABSENT;
    before_rename = occupy_a;
    renames_until_then = 0;
    require_conflict(0, CONFLICT_EXISTS);
    require_file("b", "old b");
}

/* The last record that was added. */
static uint8_t *last_record(const char *path) { return records + records_size - strlen(path) - COMMIT_RECORD_BYTES; }

static void what_was_not_expected_at_a_path_is_said(void) {
    static const struct {
        uint8_t action, expects, type;
        const char *path;
        uint32_t reason;
    } all[] = {
        {COMMIT_PUT, EXPECT_ABSENT, 0, "a", CONFLICT_EXISTS},           {COMMIT_PUT, EXPECT_STATE, 0, "gone", CONFLICT_MISSING},
        {COMMIT_PUT, EXPECT_OLDER, 0, "gone", CONFLICT_MISSING},        {COMMIT_PUT, EXPECT_STATE, ENTRY_DIRECTORY, "a", CONFLICT_TYPE},
        {COMMIT_PUT, EXPECT_OLDER, 0, "a", CONFLICT_CHANGED},           {COMMIT_PUT, EXPECT_ANY, 0, "nowhere/a", CONFLICT_PARENT},
        {COMMIT_PUT, EXPECT_ANY, 0, "link/a", CONFLICT_PARENT},         {COMMIT_PUT, EXPECT_ANY, 0, "a/below", CONFLICT_PARENT},
        {COMMIT_CHECK, EXPECT_STATE, 0, "nowhere/a", CONFLICT_MISSING}, {COMMIT_REMOVE, EXPECT_ANY, 0, ".brig-stage-2", CONFLICT_RESERVED},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        begin();
        REQUIRE(symlink("d", in_root("link")) == 0);
        put_file("gone", "");
        records_size = 0;
        add_record(all[i].action, 0, "gone");
        records_size = COMMIT_RECORD_BYTES;
        memcpy(records + records_size, all[i].path, strlen(all[i].path));
        records_size += strlen(all[i].path);
        records[1] = all[i].expects;
        records[2] = all[i].type;
        put64(records + 64, 0); /* everything has changed since then */
        put32(records + 20, (uint32_t)strlen(all[i].path));
        REQUIRE(unlink(in_root("gone")) == 0);
        REQUIRE(commit(records_size) == 0 && get32(answer + 4) == 0 && get32(answer + 12) == 1 && get32(answer + 16) == 0 && get32(answer + 20) == all[i].reason);
        require_as_before();
    }
}

/* Another state than the one that was seen: one of its numbers differs. */
static void a_file_is_as_it_was_seen_only_if_all_its_numbers_are(void) {
    static const size_t numbers[] = {40, 48, 56, 64};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        begin();
        uint8_t *number = records + numbers[i];
        put64(number, get64(number) + 1);
        REQUIRE(commit(records_size) == 0 && get32(answer + 12) == 1 && get32(answer + 20) == CONFLICT_CHANGED);
        require_as_before();
    }
    begin();
    put64(records + 40, 0); /* any file will do */
    REQUIRE(commit(records_size) == 0 && get32(answer + 12) == 0);
    require_done();
}

static void add_attributes(const char *path, uint32_t mode, uint32_t uid, uint32_t gid) {
    uint8_t *at = last_record(path);
    at[1] = EXPECT_ANY;
    put32(at + 8, mode);
    put32(at + 12, uid);
    put32(at + 16, gid);
    put64(at + 32, UINT64_C(1234567890123456789));
}

static void require_attributes(const char *path, mode_t mode, uid_t uid, gid_t gid) {
    struct stat st;
    REQUIRE(lstat(in_root(path), &st) == 0 && st.st_uid == uid && st.st_gid == gid && file_time(st.st_mtim) == INT64_C(1234567890123456789));
    REQUIRE(S_ISLNK(st.st_mode) || (st.st_mode & 07777) == mode);
}

static void what_is_made_has_the_owner_the_mode_and_the_time_that_were_asked_for(void) {
    begin();
    put_file("l", "");
    put_file("n", "");
    records_size = 0;
    add_record(COMMIT_PUT, 0, "a");
    add_attributes("a", 04751, 0x010203, 0x040506);
    add_record(COMMIT_PUT, 1, "b");
    add_attributes("b", 0640, UINT32_MAX, UINT32_MAX);
    add_record(COMMIT_PUT, 2, "d");
    add_attributes("d", 0600, UINT32_MAX, 77);
    add_record(COMMIT_SYMLINK, 0, "l");
    add_attributes("l", 0, 7, UINT32_MAX);
    put32(last_record("l") + 24, 4);
    memcpy(records + records_size, "away", 4);
    records_size += 4;
    add_record(COMMIT_MKDIR, 0, "n");
    add_attributes("n", 01711, 8, 9);
    REQUIRE(chown(in_root(".brig-stage-1/1"), 0, 0) == 0 && commit(records_size) == 0 && get32(answer + 4) == 5);
    require_attributes("a", 04751, 0x010203, 0x040506);
    require_attributes("b", 0640, 0, 0);
    require_attributes("d", 0600, 0, 77);
    require_attributes("l", 0, 7, 0);
    require_attributes("n", 01711, 8, 9);
    char target[8] = "";
    REQUIRE(readlink(in_root("l"), target, sizeof target) == 4 && memcmp(target, "away", 4) == 0);
}

/* Changes the mode of a directory, and then comes to a file that somebody else has written to, or to none. */
static void a_directory_gets_its_mode_back_if_the_commit_is_not_done(void) {
    for (int done = 0; done < 2; done++) {
        struct stat st;
        begin();
        REQUIRE(mkdir(in_root("A"), 0700) == 0 && chmod(in_root("A"), 03750) == 0);
        records_size = 0;
        add_record(COMMIT_MKDIR, 0, "A");
        add_record(COMMIT_PUT, 0, "a");
        before_rename = rewrite_a;
        renames_until_then = done ? -1 : 0;
        REQUIRE(commit(records_size) == 0 && get32(answer + 4) == (done ? 2 : 0) && get32(answer + 12) == (done ? 0 : 1));
        REQUIRE(stat(in_root("A"), &st) == 0 && (st.st_mode & 07777) == (done ? 0644 : 03750));
        require_file("a", done ? "new a" : "theirs, longer");
    }
}

/* A step that is undone after its directory got the new mode. */
static void require_undone(struct step step, mode_t mode) {
    struct stat st;
    struct commit_target target = {.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .stage = -1, .parent = -1};
    REQUIRE(target.root >= 0 && chmod(in_root("d"), 0705) == 0 && step_undo(&target, &step) == 0);
    REQUIRE(stat(in_root("d"), &st) == 0 && (st.st_mode & 07777) == mode);
    close(target.root);
}

static void only_the_directory_that_was_there_gets_its_mode_back(void) {
    struct stat st;
    begin();
    REQUIRE(stat(in_root("d"), &st) == 0);
    require_undone((struct step){.kind = STEP_MODE, .old_mode = 01750, .old_ino = st.st_ino, .path = "d"}, 01750);
    require_undone((struct step){.kind = STEP_MODE, .old_mode = NO_MODE, .old_ino = st.st_ino, .path = "d"}, 0705);
    require_undone((struct step){.kind = STEP_MODE, .old_mode = 01750, .old_ino = st.st_ino + 1, .path = "d"}, 0705);
}

static void die(void) { _exit(9); }

/* Lets the commit die before each of its renames, and lets the recovery die before each of its own, too. */
static void a_death_at_any_rename_is_recovered_from(void) {
    for (int simple = 0; simple < 2; simple++)
        for (int moment = 0; moment < 6; moment++)
            for (int again = 0; again < 7; again++) {
                begin();
                is_simple_file_system = simple;
                before_rename = die;
                renames_until_then = moment;
                pid_t child = fork();
                if (child == 0) _exit(commit(records_size) == 0 ? 0 : 1);
                int status = 0;
                REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
                if (WEXITSTATUS(status) == 0) {
                    require_done();
                    continue;
                }
                REQUIRE(WEXITSTATUS(status) == 9);
                uint8_t second[64];
                struct file_request request = request_for(".brig-stage-1", second);
                struct file_result result = {.bytes = answer};
                renames_until_then = again;
                child = fork();
                if (child == 0) _exit((int)commit_recover(&request, &result));
                REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
                renames_until_then = -1;
                REQUIRE(commit_recover(&request, &result) == 0 && get32(answer) == 0);
                require_as_before();
                REQUIRE(access(in_root(".brig-stage-1"), F_OK) != 0);
            }
}

/* The third record replaces the directory of the fourth. */
static void a_step_that_another_makes_impossible_leaves_everything_as_before(void) {
    begin();
    add_record(COMMIT_REMOVE, 0, "d/x");
    REQUIRE(commit(records_size) == ENOTDIR && get32(answer) == 0 && get32(answer + 4) == 0);
    require_as_before();
    REQUIRE(access(in_root(".brig-stage-1"), F_OK) != 0);
}

static void begin_on_overlay(void) {
    begin();
    is_overlay = true;
    REQUIRE(mkdir(in_root("e"), 0500) == 0 && mkdir(in_root("f"), 0700) == 0 && mkdir(in_root("f/deep"), 0700) == 0);
    put_file("f/deep/y", "old y");
    add_record(COMMIT_REMOVE, 0, "e");
    add_record(COMMIT_REMOVE, 0, "f");
}

static void require_done_on_overlay(void) {
    require_done();
    REQUIRE(access(in_root("e"), F_OK) != 0 && access(in_root("f"), F_OK) != 0);
}

static void a_directory_that_cannot_be_moved_is_removed_where_it_is(void) {
    begin_on_overlay();
    REQUIRE(commit(records_size) == 0 && get32(answer) == 0 && get32(answer + 4) == 5 && get32(answer + 12) == 0);
    require_done_on_overlay();
}

static void replace_f(void) {
    REQUIRE(rename(in_root("f"), in_root("theirs")) == 0 && mkdir(in_root("f"), 0700) == 0);
    put_file("f/theirs", "theirs");
}

static void a_directory_that_cannot_be_moved_stays_if_it_was_replaced_at_the_last_moment(void) {
    begin_on_overlay();
    before_rename = replace_f;
    renames_until_then = 4;
    REQUIRE(commit(records_size) == 0 && get32(answer) == 0 && get32(answer + 4) == 0 && get32(answer + 12) == 1);
    require_as_before();
    require_file("f/theirs", "theirs");
    require_file("theirs/deep/y", "old y");
}

/* Until the last step, a recovery puts everything back. After it, a recovery finishes the removals. */
static void a_commit_that_dies_with_directories_to_remove_is_as_before_or_done(void) {
    int before = 0, done = 0;
    for (int moment = 0; moment < 8; moment++)
        for (int emptied = 0; emptied < 2; emptied++) {
            begin_on_overlay();
            before_rename = die;
            renames_until_then = moment;
            pid_t child = fork();
            if (child == 0) _exit(commit(records_size) == 0 ? 0 : 1);
            int status = 0;
            REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
            if (WEXITSTATUS(status) == 0) {
                require_done_on_overlay();
                continue;
            }
            uint8_t second[64];
            struct file_request request = request_for(".brig-stage-1", second);
            struct file_result result = {.bytes = answer};
            bool has_begun = access(in_root(".brig-stage-1/journal"), F_OK) != 0;
            if (has_begun && emptied) unlink(in_root("f/deep/y"));
            renames_until_then = -1;
            REQUIRE(commit_recover(&request, &result) == 0 && get32(answer) == 0);
            REQUIRE(access(in_root(".brig-stage-1"), F_OK) != 0);
            if (has_begun) require_done_on_overlay();
            else require_as_before(), require_file("f/deep/y", "old y");
            before += !has_begun;
            done += has_begun;
        }
    REQUIRE(before > 0 && done > 0);
}

static void a_directory_is_reached_through_no_link_with_openat2_and_without(void) {
    fill_root();
    REQUIRE(symlink("d", in_root("link")) == 0 && symlink("/etc", in_root("d/out")) == 0 && mkdir(in_root("d/e"), 0700) == 0);
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    int (*const ways[])(int, const char *, int) = {open_beneath, walk_beneath};
    for (int i = 0; i < 2; i++) {
        int found = ways[i](fd, "d/e", O_PATH);
        REQUIRE(found >= 0 && close(found) == 0);
        REQUIRE(ways[i](fd, "link/e", O_PATH) < 0 && (errno == ELOOP || errno == ENOTDIR));
        REQUIRE(ways[i](fd, "d/out", O_PATH) < 0 && (errno == ELOOP || errno == ENOTDIR));
        REQUIRE(ways[i](fd, "a/x", O_PATH) < 0 && errno == ENOTDIR);
        REQUIRE(ways[i](fd, "d/none", O_PATH) < 0 && errno == ENOENT);
        char name[2 * NAME_MAX];
        for (size_t length = NAME_MAX; length <= NAME_MAX + 1; length++) {
            memset(name, 'n', length);
            name[length] = 0;
            REQUIRE(ways[i](fd, name, O_PATH) < 0 && errno == (length > NAME_MAX ? ENAMETOOLONG : ENOENT));
        }
    }
    close(fd);
    fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(open_beneath(fd, "proc/self", O_PATH) < 0 && open_beneath(fd, "proc", O_PATH) < 0 && errno == EXDEV);
    close(fd);
}

static size_t open_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    REQUIRE(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

static void a_tree_that_is_too_deep_leaves_no_descriptor_open(void) {
    begin();
    REQUIRE(chdir(in_root("d")) == 0);
    for (int i = 0; i < 250; i++) REQUIRE(mkdir("d", 0700) == 0 && chdir("d") == 0);
    REQUIRE(chdir("/") == 0);
    uint8_t *last = records + records_size - COMMIT_RECORD_BYTES - strlen("d");
    last[1] = EXPECT_OLDER;
    put64(last + 64, INT64_MAX);
    size_t before = open_descriptors();
    REQUIRE(commit(records_size) == 0 && get32(answer + 12) == 1 && get32(answer + 20) == CONFLICT_CHANGED);
    REQUIRE(open_descriptors() == before);
}

static void grow_a(void) { REQUIRE(truncate(in_root("a"), 7) == 0); }
static void grow_b(void) { REQUIRE(truncate(in_root("b"), 7) == 0); }

static void a_file_that_changes_while_it_is_compared_is_not_the_same(void) {
    const volatile uint32_t never = 0;
    struct file_job job = {.cancelled = &never};
    void (*const changes[])(void) = {NULL, grow_a, grow_b};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        bool is_same;
        fill_root();
        put_file("b", "old a");
        int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        after_read = changes[i];
        REQUIRE(fd >= 0 && compare_content(&job, (struct named_file){fd, "a"}, (struct named_file){fd, "b"}, &is_same) == 0);
        REQUIRE(is_same == (changes[i] == NULL) && close(fd) == 0);
    }
}

static void a_directory_of_somebody_else_is_removed_if_its_mode_allows_that(void) {
    const volatile uint32_t never = 0;
    struct file_job job = {.cancelled = &never};
    REQUIRE(getuid() == 0);
    fill_root();
    REQUIRE(chmod(root, 0777) == 0 && mkdir(in_root("d/theirs"), 0700) == 0 && chmod(in_root("d/theirs"), 0777) == 0);
    put_file("d/theirs/x", "");
    REQUIRE(chown(in_root("d"), 65534, 65534) == 0);
    pid_t child = fork();
    if (child == 0) _exit(setuid(65534) == 0 ? (int)file_remove(&job, in_root("d"), REMOVE_RECURSIVE | REMOVE_WITHOUT_RIGHTS) : 1);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(access(in_root("d"), F_OK) != 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define TEST(name) {#name, name}
    TEST(a_commit_is_done_although_nobody_wants_it_any_more),
    TEST(a_commit_needs_neither_exchange_nor_noreplace),
    TEST(records_that_are_cut_off_change_nothing),
    TEST(records_that_are_wrong_change_nothing),
    TEST(what_somebody_else_writes_at_the_last_moment_is_kept),
    TEST(what_is_on_another_file_system_is_a_conflict),
    TEST(what_is_staged_has_to_be_a_file_of_its_own),
    TEST(an_exchange_whose_new_file_is_gone_is_not_undone),
    TEST(a_name_that_is_taken_at_the_last_moment_stays_theirs),
    TEST(what_was_not_expected_at_a_path_is_said),
    TEST(a_file_is_as_it_was_seen_only_if_all_its_numbers_are),
    TEST(what_is_made_has_the_owner_the_mode_and_the_time_that_were_asked_for),
    TEST(a_directory_gets_its_mode_back_if_the_commit_is_not_done),
    TEST(only_the_directory_that_was_there_gets_its_mode_back),
    TEST(a_death_at_any_rename_is_recovered_from),
    TEST(a_step_that_another_makes_impossible_leaves_everything_as_before),
    TEST(a_directory_that_cannot_be_moved_is_removed_where_it_is),
    TEST(a_directory_that_cannot_be_moved_stays_if_it_was_replaced_at_the_last_moment),
    TEST(a_commit_that_dies_with_directories_to_remove_is_as_before_or_done),
    TEST(a_directory_is_reached_through_no_link_with_openat2_and_without),
    TEST(a_tree_that_is_too_deep_leaves_no_descriptor_open),
    TEST(a_file_that_changes_while_it_is_compared_is_not_the_same),
    TEST(a_directory_of_somebody_else_is_removed_if_its_mode_allows_that),
};

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-trees-XXXXXX");
    REQUIRE(mkdtemp(root));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        tests[i].run();
        printf("ok %s\n", tests[i].name);
    }
    return 0;
}
