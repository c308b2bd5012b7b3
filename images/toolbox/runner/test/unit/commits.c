/* Tests of what a commit is asked for, whom it waits for, and what it says. Its source is included, so that tests can act while it waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The errnos of the next calls of flock(2), and what another process does during one of the pauses in which the commit waits for its lock. */
static int flock_errors[4], flock_calls;
static int pauses, last_pause;
static void (*in_last_pause)(void);
/* The errnos of the next calls of read(2), and the most bytes that a call returns. */
static int read_errors[4], read_calls;
static size_t most_read = SIZE_MAX;

/* Another process does this just before the journal gets its name, which is after everything was checked. */
static void (*before_journal)(void);

int renameat(int from, const char *name, int to, const char *new_name) {
    if (before_journal) before_journal();
    before_journal = NULL;
    return (int)syscall(SYS_renameat2, from, name, to, new_name, 0);
}

static int flock_here(int fd, int operation) {
    int error = flock_calls < 4 ? flock_errors[flock_calls] : 0;
    flock_calls++;
    if (error) errno = error;
    return error ? -1 : flock(fd, operation);
}

static int pause_here(const struct timespec *time, struct timespec *rest) {
    (void)rest;
    if (time->tv_sec != 0 || time->tv_nsec != 50000000) abort();
    if (++pauses == last_pause) in_last_pause();
    return 0;
}

static ssize_t read_here(int fd, void *to, size_t size) {
    int error = read_calls < 4 ? read_errors[read_calls] : 0;
    read_calls++;
    errno = error;
    return error ? -1 : read(fd, to, size < most_read ? size : most_read);
}

#define flock flock_here
#define nanosleep pause_here
#define read read_here
#include "../../../runner-files/commit.c"
#undef flock
#undef nanosleep
#undef read
#include "commits.h"

static void begin_commit(void) {
    begin_empty();
    memset(flock_errors, 0, sizeof flock_errors);
    memset(read_errors, 0, sizeof read_errors);
    flock_calls = read_calls = pauses = last_pause = 0;
    most_read = SIZE_MAX;
    put_file("a", "old a");
    add_put(0, "a", "new a");
}

static void require_untouched(void) {
    require_file("a", "old a");
    REQUIRE(result.length == COMMIT_RESULT_BYTES && answered_flags() == 0 && answered_done() == 0);
    REQUIRE(answered_failed() == UINT32_MAX && answered_conflicts() == 0);
}

/* ---- the request -------------------------------------------------------------------------------------------------- */

static void the_name_of_a_stage_is_one_name_with_the_prefix(void) {
    static const struct {
        const char *name;
        size_t length;
    } wrong[] = {{"", 0}, {"x", 1}, {".brig-stage", 11}, {"x.brig-stage-1", 14}, {".brig-stage-1/", 14}, {".brig-stage-1\0", 14}, {".brig-stage-/../x", 17}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        begin_commit();
        struct file_request request = request_with(root, wrong[i].name, wrong[i].length);
        REQUIRE(commit_request(&request) == EINVAL);
        require_untouched();
        REQUIRE(recover_request(&request) == EINVAL && access(in_root(".brig-stage-1/0"), F_OK) == 0);
    }
    begin_commit();
    struct file_request request = plain_request();
    request.second_length = COMMIT_KEY_BYTES - 1;
    REQUIRE(commit_request(&request) == EINVAL);
    require_untouched();
}

static void the_name_of_a_stage_is_as_long_as_a_name_may_be(void) {
    static char name[NAME_MAX + 2] = ".brig-stage-", path[2 * NAME_MAX];
    memset(name + strlen(name), 'n', sizeof name - 1 - strlen(name));
    begin_commit();
    struct file_request request = request_with(root, name, NAME_MAX + 1);
    REQUIRE(commit_request(&request) == EINVAL);
    require_untouched();
    name[NAME_MAX] = 0;
    snprintf(path, sizeof path, "%s/%s", root, name);
    REQUIRE(rename(in_root(".brig-stage-1"), path) == 0);
    request = request_with(root, name, NAME_MAX);
    REQUIRE(commit_request(&request) == 0 && access(path, F_OK) != 0);
    require_committed(1);
    require_file("a", "new a");
}

/*
 * A target whose path has the greatest length can be committed to. Only its stage, whose path is longer, cannot be removed afterwards, which the
 * answer says (COMMIT_STAGE_LEFT).
 */
static void the_path_of_a_target_is_as_long_as_a_path_may_be(void) {
    static char path[PATH_MAX + 1];
    memset(path, '/', PATH_MAX);
    memcpy(path, root, strlen(root));
    begin_commit();
    struct file_request request = request_with(path, ".brig-stage-1", 13);
    REQUIRE(commit_request(&request) == EINVAL);
    require_untouched();
    path[PATH_MAX - 1] = 0;
    request = request_with(path, ".brig-stage-1", 13);
    REQUIRE(commit_request(&request) == 0 && answered_flags() == COMMIT_STAGE_LEFT && answered_done() == 1);
    require_file("a", "new a");
    REQUIRE(access(in_root(".brig-stage-1/journal.done"), F_OK) == 0 && access(in_root(".brig-stage-1/removals"), F_OK) != 0);
}

static void require_refused(uint32_t error) {
    REQUIRE(commit() == error);
    require_untouched();
    REQUIRE(recover() == error && answered_done() == 0);
    require_file("a", "old a");
}

static void a_stage_that_others_could_write_to_is_not_used(void) {
    static const mode_t modes[] = {0701, 0702, 0704, 0710, 0720, 0740};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        begin_commit();
        REQUIRE(chmod(in_root(".brig-stage-1"), modes[i]) == 0);
        require_refused(EPERM);
    }
    begin_commit();
    REQUIRE(chown(in_root(".brig-stage-1"), 1234, 0) == 0);
    require_refused(EPERM);
    begin_commit();
    REQUIRE(rename(in_root(".brig-stage-1"), in_root("stage")) == 0 && symlink("stage", in_root(".brig-stage-1")) == 0);
    require_refused(ENOTDIR);
}

static void a_target_has_to_be_a_directory(void) {
    static char path[128];
    const char *const names[] = {"nowhere", "link", "a"};
    const uint32_t errors[] = {ENOENT, ENOTDIR, ENOTDIR};
    for (int i = 0; i < 3; i++) {
        begin_commit();
        REQUIRE(symlink(".", in_root("link")) == 0);
        strcpy(path, in_root(names[i]));
        struct file_request request = request_with(path, ".brig-stage-1", 13);
        REQUIRE(commit_request(&request) == errors[i]);
        require_untouched();
        REQUIRE(recover_request(&request) == errors[i] && access(in_root(".brig-stage-1/0"), F_OK) == 0);
    }
}

/* A recovery that finds no stage has nothing to do. A commit has nothing to install. */
static void a_commit_needs_its_stage_and_a_recovery_does_not(void) {
    begin_commit();
    REQUIRE(rename(in_root(".brig-stage-1"), in_root("stage")) == 0 && commit() == ENOENT);
    require_untouched();
    REQUIRE(recover() == 0);
    require_untouched();
}

/* ---- the records -------------------------------------------------------------------------------------------------- */

static void records_arrive_in_pieces_and_after_signals(void) {
    begin_commit();
    most_read = 7;
    read_errors[0] = read_errors[2] = EINTR;
    REQUIRE(commit() == 0 && read_calls > (int)(records_size / 7) + 2);
    require_committed(1);
    require_file("a", "new a");
}

static void records_that_do_not_arrive_as_announced_change_nothing(void) {
    begin_commit();
    read_errors[1] = EIO;
    most_read = 10;
    REQUIRE(commit() == EIO);
    require_untouched();
    for (int more = -1; more <= 2; more++) {
        if (more == 0) continue;
        begin_commit();
        struct file_request request = plain_request();
        request.length = records_size - (size_t)more;
        REQUIRE(commit_request(&request) == ECANCELED);
        require_untouched();
    }
    begin_commit();
    struct file_request request = plain_request();
    request.length = (uint64_t)RECORDS_MAX_BYTES + 1;
    REQUIRE(commit_request(&request) == EFBIG && read_calls == 0);
    require_untouched();
    request.length--;
    REQUIRE(commit_request(&request) == ECANCELED);
    require_untouched();
}

static void a_commit_of_nothing_removes_its_stage(void) {
    begin_commit();
    records_size = 0;
    REQUIRE(commit() == 0);
    require_committed(0);
    require_file("a", "old a");
    begin_commit();
    records_size = 0;
    add(COMMIT_CHECK, "a");
    add(COMMIT_REMOVE, "nowhere");
    REQUIRE(commit() == 0);
    require_committed(0);
}

static void so_many_conflicts_are_told_and_the_others_are_counted(void) {
    char name[16];
    for (uint32_t more = 0; more < 2; more++) {
        begin_commit();
        records_size = 0;
        for (uint32_t i = 0; i < COMMIT_CONFLICTS_MAX + more; i++) {
            snprintf(name, sizeof name, "%05u", i);
            add(COMMIT_REMOVE, name)[1] = EXPECT_STATE;
        }
        REQUIRE(commit() == 0 && answered_conflicts() == COMMIT_CONFLICTS_MAX + more && answered_done() == 0);
        REQUIRE(result.length == COMMIT_RESULT_BYTES + COMMIT_CONFLICTS_MAX * COMMIT_CONFLICT_BYTES);
        const uint8_t *last = answer + result.length - COMMIT_CONFLICT_BYTES;
        REQUIRE(get32(last) == COMMIT_CONFLICTS_MAX - 1 && get32(last + 4) == CONFLICT_MISSING && last[8] == 0xee);
    }
}

/* ---- one at a time ------------------------------------------------------------------------------------------------ */

static int others;

static void hold_lock(void) {
    others = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(others >= 0 && flock(others, LOCK_EX) == 0);
}

static void release_lock(void) { REQUIRE(flock(others, LOCK_UN) == 0); }

static void a_commit_waits_for_another_one(void) {
    begin_commit();
    hold_lock();
    last_pause = 3;
    in_last_pause = release_lock;
    REQUIRE(commit() == 0 && pauses == 3);
    require_committed(1);
    /* When the first commit has ended, the one that waits goes on. */
    REQUIRE(flock(others, LOCK_EX | LOCK_NB) == 0 && close(others) == 0);
}

static void a_commit_does_not_wait_for_ever(void) {
    begin_commit();
    hold_lock();
    REQUIRE(commit() == EWOULDBLOCK && pauses == LOCK_ATTEMPTS);
    require_untouched();
    pauses = 0;
    REQUIRE(recover() == EWOULDBLOCK && pauses == LOCK_ATTEMPTS && access(in_root(".brig-stage-1/0"), F_OK) == 0);
    close(others);
}

static void a_file_system_without_locks_is_no_obstacle(void) {
    begin_commit();
    flock_errors[0] = EINTR;
    flock_errors[1] = EWOULDBLOCK;
    flock_errors[2] = ENOLCK;
    REQUIRE(commit() == 0 && pauses == 2 && flock_calls == 3);
    require_committed(1);
}

static void replace_d(void) { REQUIRE(rename(in_root("d"), in_root("moved")) == 0 && mkdir(in_root("d"), 0700) == 0); }

static void what_is_installed_goes_into_the_directory_that_is_there_now(void) {
    begin_commit();
    make_directory("d", 0700);
    records_size = 0;
    add_put(1, "d/x", "new x");
    before_journal = replace_d;
    REQUIRE(commit() == 0 && !before_journal);
    require_committed(1);
    require_file("d/x", "new x");
    REQUIRE(access(in_root("moved/x"), F_OK) != 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-commits-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(the_name_of_a_stage_is_one_name_with_the_prefix);
    RUN(the_name_of_a_stage_is_as_long_as_a_name_may_be);
    RUN(the_path_of_a_target_is_as_long_as_a_path_may_be);
    RUN(a_stage_that_others_could_write_to_is_not_used);
    RUN(a_target_has_to_be_a_directory);
    RUN(a_commit_needs_its_stage_and_a_recovery_does_not);
    RUN(records_arrive_in_pieces_and_after_signals);
    RUN(records_that_do_not_arrive_as_announced_change_nothing);
    RUN(a_commit_of_nothing_removes_its_stage);
    RUN(so_many_conflicts_are_told_and_the_others_are_counted);
    RUN(a_commit_waits_for_another_one);
    RUN(a_commit_does_not_wait_for_ever);
    RUN(a_file_system_without_locks_is_no_obstacle);
    RUN(what_is_installed_goes_into_the_directory_that_is_there_now);
    return 0;
}
