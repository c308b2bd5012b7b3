/* For each system call that a commit makes: what is left on disk when that call fails, or when the process is killed at it. */
#define _GNU_SOURCE
#include "failing.h"

#include "commits.h"
#include "picture.h"

static char before[PICTURE_MAX], done[PICTURE_MAX];

/* ---- commits ------------------------------------------------------------------------------------------------------ */

#define SOME_TIME UINT64_C(1234567890123456789)

static void put_old(const char *name) {
    const struct timespec times[2] = {{1, 2}, {3, 4}};
    put_file(name, name);
    REQUIRE(utimensat(AT_FDCWD, in_root(name), times, 0) == 0);
}

/* A commit of every kind of step. */
static void begin(void) {
    begin_empty();
    put_old("a");
    put_old("b");
    make_directory("d", 0750);
    put_old("d/x");
    make_directory("e", 0500);
    make_directory("e/inner", 0700);
    put_old("e/inner/y");
    REQUIRE(symlink("old", in_root("l")) == 0);
    uint8_t *a = add_put(0, "a", "new a");
    put32(a + 8, 04751);
    put32(a + 12, 5);
    expect_state(a, "a");
    expect_state(add(COMMIT_REMOVE, "b"), "b");
    put32(add(COMMIT_MKDIR, "d") + 8, 0711);
    add_put(1, "d/x", "new x");
    uint8_t *e = add(COMMIT_REMOVE, "e");
    e[1] = EXPECT_OLDER;
    put64(e + 64, INT64_MAX);
    put32(add_with_target(COMMIT_SYMLINK, "l", "away") + 16, 6);
    uint8_t *n = add(COMMIT_MKDIR, "n");
    put32(n + 8, 0511);
    put32(n + 12, 7);
    add_put(2, "n/f", "new f")[1] = EXPECT_ABSENT;
    for (size_t at = 0; at < records_size; at += COMMIT_RECORD_BYTES + get32(records + at + 20) + get32(records + at + 24)) put64(records + at + 32, SOME_TIME);
    take_picture(before, true);
}

#define STEPS 8u

static void see_it_done(void) {
    begin();
    REQUIRE(commit() == 0);
    require_committed(STEPS);
    take_picture(done, false);
}

static bool is_done(void) { return is_now(done, false) && answered_done() == STEPS; }

/* ---- kinds of file systems ---------------------------------------------------------------------------------------- */

static int refuse_flags(int from, const char *name, int to, const char *new_name, unsigned flags) {
    (void)from, (void)name, (void)to, (void)new_name;
    return flags != 0 ? EINVAL : 0;
}

/* The directory "e" is of an overlay's lower layer. */
static int refuse_e(int from, const char *name, int to, const char *new_name, unsigned flags) {
    (void)from, (void)to, (void)flags;
    return strcmp(name, "e") == 0 || strcmp(new_name, "e") == 0 ? EXDEV : 0;
}

static int (*const kinds[])(int, const char *, int, const char *, unsigned) = {NULL, refuse_flags, refuse_e};

/* ---- failures ----------------------------------------------------------------------------------------------------- */

static int records_fd;

static void put_records(void) {
    records_fd = memfd_create("records", MFD_CLOEXEC);
    REQUIRE(records_fd >= 0 && pwrite(records_fd, records, records_size, 0) == (ssize_t)records_size);
}

static uint32_t commit_with_failure(void) {
    static const volatile uint32_t never;
    struct file_request request = plain_request();
    struct file_job job = {.stream = records_fd, .cancelled = &never};
    return commit_run(&job, &request, &result);
}

/* False if the recovery has said that it could not undo something, which it may then not be able to do at all. */
static bool recovers_with_failure(int number) {
    struct file_request request = plain_request();
    fail_at(number, EIO);
    commit_recover(&request, &result);
    has_failed();
    return !(answered_flags() & COMMIT_TORN);
}

static void require_recovered(void) {
    REQUIRE(recover() == 0 && answered_flags() == 0 && answered_conflicts() == 0 && access(in_root(".brig-stage-1"), F_OK) != 0);
}

/*
 * Calls whose failure may leave a commit successful: those that clean up; the lock, which not every file system has; and fstatat of what was put
 * aside (its names begin with "o") or of "d", which then gets its permissions once more.
 */
static bool is_harmless(void) {
    static const char *const all[] = {"flock", "lstat", "unlink", "rmdir", "unlinkat", "open", "opendir", "readdir", "chmod", "chdir", "fchdir", "stat", "close"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], failing.failed) == 0) return true;
    return strcmp(failing.failed, "fstatat") == 0 && (failing.failed_at[0] == 'o' || strcmp(failing.failed_at, "d") == 0);
}

/* A commit one of whose calls has failed is either done or was never there, and it has answered so. */
static void require_done_or_not(uint32_t error) {
    if (is_now(before, true)) {
        REQUIRE((error == EIO && answered_conflicts() == 0) || (error == 0 && answered_conflicts() == 1 && answered_failed() == UINT32_MAX));
        REQUIRE(answered_done() == 0 && answered_flags() == 0);
        return;
    }
    REQUIRE(answered_done() == STEPS && answered_conflicts() == 0);
    if (answered_flags() == COMMIT_TORN) {
        /* The removal of "e" failed, and what came before it could not be undone on this kind of file system: the recovery completes the commit. */
        REQUIRE(refuse_rename == refuse_e && error == EIO && answered_failed() == 4);
        require_recovered();
    } else {
        REQUIRE(error == 0 && answered_failed() == UINT32_MAX && is_harmless());
    }
    REQUIRE(is_now(done, false));
}

static void a_commit_in_which_a_call_fails_is_done_or_was_never_there(void) {
    see_it_done();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        int undone = 0, left = 0, torn = 0;
        refuse_rename = kinds[kind];
        for (int number = 0;; number += kind == 0 ? 1 : 3) {
            begin();
            put_records();
            size_t descriptors = open_descriptors();
            fail_at(number, EIO);
            uint32_t error = commit_with_failure();
            if (!has_failed()) break;
            REQUIRE(open_descriptors() == descriptors && close(records_fd) == 0);
            undone += answered_done() == 0;
            left += answered_flags() == COMMIT_STAGE_LEFT;
            torn += answered_flags() == COMMIT_TORN;
            require_done_or_not(error);
        }
        REQUIRE(is_done() && close(records_fd) == 0 && undone > 20 && left > 3 && (torn > 0) == (kinds[kind] == refuse_e));
    }
    refuse_rename = NULL;
}

/* ---- deaths ------------------------------------------------------------------------------------------------------- */

/* False if the commit was done before that call. */
static bool dies_at(int number) {
    put_records();
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        die_at(number);
        _exit(commit_with_failure() == 0 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && close(records_fd) == 0);
    REQUIRE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DEATH);
    return WEXITSTATUS(status) == DEATH;
}

/*
 * Kills the commit at one call after the other, and recovers. Some recoveries have a failing call too and are repeated. Up to one point of the
 * commit, a recovery undoes everything; from that point on, it completes everything.
 */
static void a_commit_that_dies_at_any_call_is_recovered_from(void) {
    see_it_done();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        int as_before = 0, finished = 0;
        refuse_rename = kinds[kind];
        for (int number = 0;; number += kind == 0 ? 2 : 5) {
            begin();
            if (!dies_at(number)) break;
            if (number % 3 != 0 && !recovers_with_failure(number * 3 % 50)) continue;
            require_recovered();
            bool is_as_before = is_now(before, true);
            REQUIRE(is_as_before ? finished == 0 : is_now(done, false));
            as_before += is_as_before;
            finished += !is_as_before;
        }
        REQUIRE(is_now(done, false) && as_before > 10 && finished > 3);
    }
    refuse_rename = NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-failures-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(a_commit_in_which_a_call_fails_is_done_or_was_never_there);
    RUN(a_commit_that_dies_at_any_call_is_recovered_from);
    return 0;
}
