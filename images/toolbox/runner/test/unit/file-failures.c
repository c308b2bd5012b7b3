/* For each system call that an operation on files makes: what the operation answers, and what it leaves on disk, when that call fails. */
#define _GNU_SOURCE
#include "failing.h"

#include <sys/mman.h>
#include <sys/time.h>

#include "../../../runner-files/changes.h"
#include "../../../runner-files/copy.h"
#include "../../../runner-files/file-list.h"
#include "../../../runner-files/file-read.h"
#include "../../../runner-files/file-remove.h"
#include "../../../runner-files/file-stat.h"
#include "../../../runner-files/file-write.h"
#include "../../../runner-files/file-protocol.h"
#include "../../../runner-files/receipt.h"
#include "../../../common/wire.h"
#include "root.h"

#define OUTPUT_MAX 65536

static const volatile uint32_t never;
static const struct shared shared;
static struct file_request request;
static uint8_t answer[RESULT_MAX];
static struct file_result result;
static int stream;
/* The errno of the call that fails. */
static int failure = EIO;

static void open_stream(const char *input) {
    stream = memfd_create("stream", MFD_CLOEXEC);
    REQUIRE(stream >= 0 && pwrite(stream, input, strlen(input), 0) == (ssize_t)strlen(input));
}

/* Runs an operation whose system call with this number (from 0) fails. False if it makes fewer calls. */
static bool fails_in(uint32_t (*operation)(const struct file_job *), int number, uint32_t *error) {
    struct file_job job = {.stream = stream, .cancelled = &never, .shared = &shared};
    char here[PATH_MAX];
    size_t before = count_in("/proc/self/fd");
    result = (struct file_result){.bytes = answer};
    memset(answer, 0, sizeof answer);
    fail_at(number, failure);
    *error = operation(&job);
    bool has = has_failed();
    if (has && strcmp(failing.failed_at, "/") == 0) REQUIRE(chdir("/") == 0);
    REQUIRE(count_in("/proc/self/fd") == before && getcwd(here, sizeof here) && strcmp(here, "/") == 0);
    return has;
}

static bool is_failed(const char *name) { return strcmp(failing.failed, name) == 0; }

/* ---- what only reads ---------------------------------------------------------------------------------------------- */

struct output {
    uint8_t bytes[OUTPUT_MAX];
    ssize_t size;
};

static struct output whole, now;

static void take_output(struct output *output) {
    memset(output, 0, sizeof *output);
    output->size = pread(stream, output->bytes, OUTPUT_MAX, 0);
    REQUIRE(output->size >= 0 && output->size < OUTPUT_MAX && close(stream) == 0);
}

/*
 * Fails each call in turn. The operation must then answer with that errno, or have the same output as without the failure. `says_otherwise`: other
 * output that is right too.
 */
static void require_whole_or_refused(uint32_t (*operation)(const struct file_job *), bool (*says_otherwise)(void)) {
    uint32_t error;
    open_stream("");
    REQUIRE(!fails_in(operation, -1, &error) && error == 0);
    take_output(&whole);
    REQUIRE(whole.size > 0);
    for (int number = 0;; number++) {
        open_stream("");
        bool has = fails_in(operation, number, &error);
        take_output(&now);
        if (!has) break;
        bool is_whole = now.size == whole.size && memcmp(now.bytes, whole.bytes, (size_t)now.size) == 0;
        REQUIRE(error == (uint32_t)failure || (error == 0 && (is_whole || (says_otherwise && says_otherwise()))));
    }
    REQUIRE(error == 0 && now.size == whole.size);
}

static uint32_t read_it(const struct file_job *job) { return file_read(&request, in_root("a"), job->stream, &result); }
static uint32_t list_it(const struct file_job *job) { return file_list_to_stream(root, job->stream); }

static void a_read_or_a_list_is_whole_or_an_error(void) {
    empty_root();
    put_file("a", "content of a");
    put_file("b", "b");
    request = (struct file_request){.flags = READ_SKIP_HOLE};
    require_whole_or_refused(read_it, NULL);
    require_whole_or_refused(list_it, NULL);
}

/* A request for the changes of the directory `merged`, whose layers are `base` and `upper`. */
static void ask_for_changes(void) {
    static char merged[128], second[512];
    strcpy(merged, in_root("merged"));
    size_t base = strlen(in_root("base")) + 1, upper = strlen(in_root("upper")) + 1;
    memcpy(second, in_root("base"), base);
    memcpy(second + base, in_root("upper"), upper);
    request = (struct file_request){.path = (const uint8_t *)merged, .path_length = (uint32_t)strlen(merged), .second = (const uint8_t *)second};
    request.second_length = (uint32_t)(base + upper);
}

static uint32_t find_changes(const struct file_job *job) { return changes_run(job, &request, &result); }

/* If it cannot be checked whether a file changed while it was compared, the file is listed as changed. */
static bool says_too_much(void) { return is_failed("fstat") && now.size > whole.size; }

static void the_changes_are_all_of_them_or_an_error(void) {
    empty_root();
    static const char *const directories[] = {"merged", "base", "upper", "merged/d", "base/d", "upper/d", "upper/d/e", "merged/d/e"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) REQUIRE(mkdir(in_root(directories[i]), 0700) == 0);
    static const char *const files[] = {"merged/a", "base/a", "upper/a", "base/d/gone", "upper/d/gone", "merged/d/e/x", "upper/d/e/x"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) put_file(files[i], files[i]);
    put_file("merged/same", "same");
    put_file("base/same", "same");
    put_file("upper/same", "same");
    REQUIRE(symlink("new", in_root("merged/l")) == 0 && symlink("old", in_root("base/l")) == 0 && symlink("new", in_root("upper/l")) == 0);
    ask_for_changes();
    static const int all[] = {EMFILE, ENFILE, ENOMEM, EIO};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        failure = all[i];
        require_whole_or_refused(find_changes, says_too_much);
    }
}

/* The list of changes is written in pieces. If one of them cannot be written, the answer is an error, although later ones can be. */
static void a_piece_of_the_changes_that_cannot_be_written_is_an_error(void) {
    static char name[300];
    empty_root();
    static const char *const directories[] = {"merged", "base", "upper"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) REQUIRE(mkdir(in_root(directories[i]), 0700) == 0);
    enum { FILES = 400 };
    for (int i = 0; i < FILES; i++) {
        for (int side = 0; side < 2; side++) {
            snprintf(name, sizeof name, "%s/%0200d", side ? "upper" : "merged", i);
            put_file(name, "x");
        }
    }
    ask_for_changes();
    struct file_job job = {.cancelled = &never};
    int writes = 0;
    for (bool has = true; has; writes += has) {
        open_stream("");
        job.stream = stream;
        result = (struct file_result){.bytes = answer};
        fail_in("write", writes, ENOSPC);
        uint32_t error = changes_run(&job, &request, &result);
        has = has_failed();
        close(stream);
        REQUIRE(error == (has ? ENOSPC : 0));
    }
    REQUIRE(writes > 1);
}

static uint32_t take_receipt(const struct file_job *job) { return receipt_run(job, &request, &result); }

/* A digest is missing where the file could not be reached or read. */
static bool says_that_something_is_missing(void) {
    bool has_no_digest = is_failed("chdir") || is_failed("fchdir") || is_failed("read") || is_failed("open") || is_failed("openat") || is_failed("fstat");
    return get32(answer + 12) != RECEIPT_FINISHED || has_no_digest;
}

static void a_receipt_is_whole_or_says_that_it_is_not(void) {
    empty_root();
    static const char *const directories[] = {"d", "d/.git", "bare", "bare/objects", "bare/refs"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) REQUIRE(mkdir(in_root(directories[i]), 0700) == 0);
    put_file(".bashrc", "x");
    put_file("d/Makefile", "x");
    put_file("bare/HEAD", "x");
    request = (struct file_request){.mode = 600000, .path = (const uint8_t *)root, .path_length = (uint32_t)strlen(root)};
    static const char parts[] = "\n\n.bashrc\nMakefile\n\n1 /nowhere";
    request.second = (const uint8_t *)parts;
    request.second_length = sizeof parts - 1;
    require_whole_or_refused(take_receipt, says_that_something_is_missing);
}

/* ---- writes ------------------------------------------------------------------------------------------------------- */

static uint32_t write_it(const struct file_job *job) {
    static char path[PATH_MAX];
    strcpy(path, in_root(request.flags & WRITE_NEW ? "d/new" : request.flags & PATH_WITHOUT_LINKS ? "d/a" : "link"));
    return file_write(job, &request, path);
}

/* Whatever the file system can do, the file is as before or new, and nothing is beside it. */
static void a_write_is_whole_or_an_error_and_leaves_nothing_beside(void) {
    static const uint8_t flags[] = {0, PATH_WITHOUT_LINKS, WRITE_NEW, WRITE_INLINE};
    for (size_t i = 0; i < 2 * sizeof flags; i++) {
        bool is_new = flags[i / 2] & WRITE_NEW, has;
        uint32_t error;
        int failures = 0;
        refuses_unnamed = i % 2;
        for (int number = 0;; number++) {
            empty_root();
            REQUIRE(mkdir(in_root("d"), 0700) == 0 && symlink("d/a", in_root("link")) == 0);
            put_file("d/a", "old");
            open_stream("content");
            request = (struct file_request){.operation = FILE_WRITE, .flags = flags[i / 2], .mode = 0640, .second = (const uint8_t *)"content", .second_length = 7};
            has = fails_in(write_it, number, &error);
            close(stream);
            bool is_there = access(in_root("d/new"), F_OK) == 0;
            REQUIRE(is_there == (is_new && (error == 0 || (has && is_failed("unlink")))));
            if (!is_new) require_file("d/a", error == 0 ? "content" : "old");
            if (is_there) require_file("d/new", "content");
            /* What cannot be removed stays. */
            REQUIRE(count_in(in_root("d")) == (size_t)(is_there ? 4 : 3) + (has && is_failed("unlink")));
            if (!has) break;
            REQUIRE(error == EIO || (error == 0 && (is_failed("open") || is_failed("unlink"))));
            failures++;
        }
        REQUIRE(error == 0 && failures > 5);
    }
    refuses_unnamed = false;
}

static void a_read_that_is_interrupted_goes_on_to_the_end_of_the_file(void) {
    struct file_job job = {.cancelled = &never};
    int number = 0;
    empty_root();
    put_file("a", "content of a");
    for (bool has = true; has; number++) {
        open_stream("");
        job.stream = stream;
        request = (struct file_request){.operation = FILE_READ};
        fail_in("pread", number, EINTR);
        REQUIRE(read_it(&job) == 0);
        has = has_failed();
        take_output(&now);
        REQUIRE(now.size == 12 && memcmp(now.bytes, "content of a", 12) == 0);
    }
    REQUIRE(number == 3); /* interrupted before the content, before the end, and then not at all */
}

static void a_write_whose_stream_is_interrupted_goes_on_to_its_end(void) {
    struct file_job job = {.cancelled = &never};
    int number = 0;
    for (bool has = true; has; number++) {
        empty_root();
        REQUIRE(mkdir(in_root("d"), 0700) == 0);
        open_stream("content");
        job.stream = stream;
        request = (struct file_request){.operation = FILE_WRITE, .flags = WRITE_NEW, .mode = 0640};
        fail_in("read", number, EINTR);
        REQUIRE(write_it(&job) == 0);
        has = has_failed();
        close(stream);
        require_file("d/new", "content");
    }
    REQUIRE(number == 3); /* interrupted before the content, before the end, and then not at all */
}

/* ---- removals ----------------------------------------------------------------------------------------------------- */

static uint32_t remove_it(const struct file_job *job) { return file_remove(job, in_root("d"), REMOVE_RECURSIVE | REMOVE_WITHOUT_RIGHTS); }

static void a_removal_is_done_or_an_error(void) {
    bool has;
    uint32_t error;
    int refused = 0;
    for (int number = 0;; number++) {
        empty_root();
        static const char *const directories[] = {"d", "d/e", "d/e/f", "d/g"};
        for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) REQUIRE(mkdir(in_root(directories[i]), 0700) == 0);
        put_file("d/e/f/x", "x");
        put_file("d/g/y", "y");
        REQUIRE(chdir("/") == 0);
        stream = -1;
        has = fails_in(remove_it, number, &error);
        bool is_gone = access(in_root("d"), F_OK) != 0;
        if (!has) break;
        REQUIRE(is_gone == (error == 0) || (is_gone && error == EIO && is_failed("chdir")));
        REQUIRE(error == 0 || error == EIO);
        refused += !is_gone;
    }
    REQUIRE(error == 0 && refused > 20);
}

static void put_a_link(void) { REQUIRE(rename(in_root("d/e"), in_root("e")) == 0 && symlink("../outside", in_root("d/e")) == 0); }
static void put_a_fifo(void) { REQUIRE(rename(in_root("d/e"), in_root("e")) == 0 && mkfifo(in_root("d/e"), 0600) == 0); }

/*
 * When the removal knows that something is a directory, another process replaces it by a link or a FIFO. The link must not be followed, and the
 * FIFO not be waited for.
 */
static void what_takes_the_place_of_a_directory_is_not_entered(void) {
    static void (*const puts[])(void) = {put_a_link, put_a_fifo};
    struct file_job job = {.cancelled = &never};
    for (int i = 0; i < 6; i++) {
        empty_root();
        static const char *const directories[] = {"d", "d/e", "outside"};
        for (size_t j = 0; j < sizeof directories / sizeof *directories; j++) REQUIRE(mkdir(in_root(directories[j]), 0755) == 0);
        put_file("d/e/x", "x");
        put_file("outside/file", "theirs");
        REQUIRE(chdir("/") == 0);
        bool takes_rights = i >= 2;
        /* With REMOVE_WITHOUT_RIGHTS a directory is opened twice: first to change its mode, then to enter it. */
        act_before("open", "e", i >= 4, puts[i % 2]);
        uint32_t error = file_remove(&job, in_root("d"), takes_rights ? REMOVE_RECURSIVE | REMOVE_WITHOUT_RIGHTS : REMOVE_RECURSIVE);
        REQUIRE(has_failed() && error == ENOTDIR);
        struct stat st;
        REQUIRE(stat(in_root("outside"), &st) == 0 && (st.st_mode & 07777) == 0755);
        require_file("outside/file", "theirs");
        REQUIRE(access(in_root("d"), F_OK) == 0);
    }
}

/* Its owner may then do everything with it, and nobody else anything. */
static void a_directory_whose_removal_is_given_up_is_open_to_its_owner_alone(void) {
    static const volatile uint32_t cancelled = 1;
    struct file_job job = {.cancelled = &cancelled};
    struct stat st;
    for (int takes = 0; takes < 2; takes++) {
        empty_root();
        REQUIRE(mkdir(in_root("d"), 0700) == 0);
        put_file("d/x", "x");
        REQUIRE(chmod(in_root("d"), 0055) == 0);
        REQUIRE(file_remove(&job, in_root("d"), takes ? REMOVE_RECURSIVE | REMOVE_WITHOUT_RIGHTS : REMOVE_RECURSIVE) == ECANCELED);
        REQUIRE(stat(in_root("d"), &st) == 0 && (st.st_mode & 07777) == (takes ? 0700 : 0055) && count_in(in_root("d")) == 3);
    }
}

/* ---- copies ------------------------------------------------------------------------------------------------------- */

static uint8_t second[2048];

static void add_record(uint8_t action, const char *path, const char *target) {
    uint8_t *at = second + request.second_length;
    size_t length = strlen(path);
    memset(at, 0, COMMIT_RECORD_BYTES);
    at[0] = action;
    put32(at + 8, 0751);
    put32(at + 12, 5);
    put32(at + 16, 6);
    put32(at + 20, (uint32_t)length);
    put32(at + 24, (uint32_t)strlen(target));
    put64(at + 32, 1000000000);
    put64(at + 48, 100);
    memcpy(at + COMMIT_RECORD_BYTES, path, length);
    memcpy(at + COMMIT_RECORD_BYTES + length, target, strlen(target));
    request.second_length += (uint32_t)(COMMIT_RECORD_BYTES + length + strlen(target));
}

static void prepare_copy(void) {
    static char to[128];
    static const char *const directories[] = {"from", "to", "from/d", "to/d", "to/e"};
    empty_root();
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) REQUIRE(mkdir(in_root(directories[i]), 0700) == 0);
    put_file("from/a", "new a");
    put_file("from/d/x", "new x");
    put_file("to/a", "old a");
    put_file("to/e/below", "x");
    put_file("to/z", "x");
    strcpy(to, in_root("to"));
    snprintf((char *)second, sizeof second, "%s", in_root("from"));
    request = (struct file_request){.length = 1000, .path = (const uint8_t *)to, .path_length = (uint32_t)strlen(to), .second = second};
    request.second_length = (uint32_t)strlen((const char *)second) + 1;
    add_record(COMMIT_PUT, "a", "");
    add_record(COMMIT_MKDIR, "d", "");
    add_record(COMMIT_PUT, "d/x", "");
    add_record(COMMIT_SYMLINK, "e", "away");
    add_record(COMMIT_MKDIR, "n", "");
    add_record(COMMIT_REMOVE, "z", "");
}

static uint32_t copy_it(const struct file_job *job) { return copy_run(job, &request, &result); }

static bool is_as_wanted(const char *name, mode_t mode, bool is_owned, off_t size) {
    struct stat st;
    if (lstat(in_root(name), &st) != 0 || st.st_mode != mode || file_time(st.st_mtim) != 1000000000) return false;
    return (!is_owned || (st.st_uid == 5 && st.st_gid == 6)) && (S_ISDIR(mode) || st.st_size == size);
}

static bool is_copied(void) {
    return is_as_wanted("to/a", S_IFREG | 0751, true, 5) && is_as_wanted("to/d", S_IFDIR | 0751, false, 0) && is_as_wanted("to/d/x", S_IFREG | 0751, true, 5) &&
           is_as_wanted("to/e", S_IFLNK | 0777, true, 4) && is_as_wanted("to/n", S_IFDIR | 0751, true, 0) && access(in_root("to/z"), F_OK) != 0;
}

/* Its stage is removed, unless that is what fails. */
static void a_copy_is_whole_or_an_error(void) {
    bool has;
    uint32_t error;
    int refused = 0, random = 0;
    for (int number = 0;; number++) {
        prepare_copy();
        open_stream("");
        has = fails_in(copy_it, number, &error);
        close(stream);
        if (!has) break;
        REQUIRE(error == EIO || (error == 0 && is_copied()));
        /* The name of its stage is random, so that nobody can know it before. Without random numbers there is no copy. */
        if (is_failed("getrandom")) REQUIRE(error == EIO && ++random == 1);
        size_t names = count_in(in_root("to"));
        REQUIRE(error == 0 ? names == 6 : names <= 7 && get32(answer + 12) == 0);
        refused += error != 0;
    }
    REQUIRE(error == 0 && is_copied() && refused > 40 && random == 1);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-file-failures-XXXXXX");
    REQUIRE(mkdtemp(root) && chdir("/") == 0);
    RUN(a_read_or_a_list_is_whole_or_an_error);
    RUN(a_write_is_whole_or_an_error_and_leaves_nothing_beside);
    RUN(a_read_that_is_interrupted_goes_on_to_the_end_of_the_file);
    RUN(a_write_whose_stream_is_interrupted_goes_on_to_its_end);
    RUN(a_removal_is_done_or_an_error);
    RUN(what_takes_the_place_of_a_directory_is_not_entered);
    RUN(a_directory_whose_removal_is_given_up_is_open_to_its_owner_alone);
    RUN(a_copy_is_whole_or_an_error);
    RUN(a_receipt_is_whole_or_says_that_it_is_not);
    RUN(the_changes_are_all_of_them_or_an_error);
    RUN(a_piece_of_the_changes_that_cannot_be_written_is_an_error);
    return 0;
}
