/* Tests of the parts that need no event loop. Each prints one line. The first condition that does not hold ends the run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <fcntl.h>

/* Something that another process does after a name was checked and before it is opened. */
static void (*before_open)(void);

static int open_after_that(const char *path, int flags, mode_t mode) {
    if (before_open) before_open();
    before_open = NULL;
    return open(path, flags, mode);
}

/* The sources are included, so that tests can call their static functions and act just before a file is opened. */
#define open(path, ...) open_after_that(path, OPEN_FLAGS(__VA_ARGS__, 0, 0))
#define OPEN_FLAGS(flags, mode, ...) flags, mode
#include "../../../runner-files/file-list.c"
#include "../../../runner-files/file-read.c"
#include "../../../runner-files/file-remove.c"
#include "../../../runner-files/file-stat.c"
#include "../../../runner-files/file-write.c"
#include "../../../runner-files/files.c"
#undef open

#include "../../address.h"
#include "../../buffer.h"
#include "../../counters.c"
#include "../../link.h"
#include "../../rooms.h"
#include "../../../common/tree.h"
#include "digest.h"
#include "require.h"

static struct shared shared;

/* Stands in for report.c, which needs the mounts and limits of a real sandbox and is tested in one. */
int report_write(int out, const char *paths) { return out < 0 || !paths ? -1 : 0; }

/* ---- small parts -------------------------------------------------------------------------------------------------- */

static void require_digest(const char *text, const char *expected) {
    uint8_t digest[32];
    char hex[65];
    digest_of(text, strlen(text), digest);
    for (size_t i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    REQUIRE(strcmp(hex, expected) == 0);
}

static void digests_are_those_of_the_standard(void) {
    require_digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    require_digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    require_digest("0123456789abcdef0123456789abcdef0123456789abcdef0123456", "72fa96f64bf2dd082aafb08cf80ed17f5b3d2c6cd527c4b138b69506f5e5c173");
}

static void numbers_are_little_endian(void) {
    uint8_t bytes[8];
    put64(bytes, UINT64_C(0x8877665544332211));
    for (int i = 0; i < 8; i++) REQUIRE(bytes[i] == 0x11 * (i + 1));
    REQUIRE(get64(bytes) == UINT64_C(0x8877665544332211) && get32(bytes) == 0x44332211u && get16(bytes) == 0x2211);
}

static void a_buffer_gives_back_what_a_burst_took(void) {
    struct buffer b = {0};
    static uint8_t burst[3 << 20];
    REQUIRE(buffer_append(&b, burst, sizeof burst) == 0 && buffer_append(&b, "tail", 4) == 0);
    REQUIRE(!buffer_is_loose(&b));
    buffer_drop(&b, sizeof burst);
    REQUIRE(buffer_is_loose(&b));
    buffer_tighten(&b);
    REQUIRE(!buffer_is_loose(&b) && b.capacity <= 4096 && buffer_length(&b) == 4 && memcmp(buffer_front(&b), "tail", 4) == 0);
    buffer_free(&b);
}

static void an_acknowledgement_of_what_was_not_sent_is_refused(void) {
    struct link link = {0};
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(link_send(&link, FRAME_STDOUT, 1, "a", 1) == 0 && !link_acknowledge(&link, 1));
    REQUIRE(link_flush(&link, ends[1]) == 0 && !link_acknowledge(&link, 2) && link_acknowledge(&link, 1));
    REQUIRE(!link_acknowledge(&link, 0) && !link_resume(&link, 0) && link_resume(&link, 1));
    close(ends[0]);
    close(ends[1]);
    buffer_free(&link.kept);
    buffer_free(&link.control);
}

/* WELCOME has said what was received until then. */
static void the_count_towards_an_ack_begins_again_with_a_connection(void) {
    struct link link = {0};
    for (int i = 0; i < 63; i++) link_count_received(&link, 1);
    REQUIRE(link_resume(&link, 0));
    for (int i = 0; i < 63; i++) link_count_received(&link, 1);
    REQUIRE(buffer_length(&link.control) == 0);
    link_count_received(&link, 1);
    REQUIRE(buffer_length(&link.control) == HEADER_BYTES + 8 && get64(buffer_front(&link.control) + HEADER_BYTES) == 127);
    REQUIRE(link_resume(&link, 0) && buffer_length(&link.control) == 0);
    link_count_received(&link, (128 << 10) - 1);
    REQUIRE(link_resume(&link, 0));
    link_count_received(&link, (128 << 10) - 1);
    REQUIRE(buffer_length(&link.control) == 0);
    link_count_received(&link, 1);
    REQUIRE(buffer_length(&link.control) == HEADER_BYTES + 8 && get64(buffer_front(&link.control) + HEADER_BYTES) == 130);
    buffer_free(&link.control);
}

static void a_resumption_that_is_refused_changes_nothing(void) {
    struct link link = {0}, before;
    int ends[2];
    static uint8_t large[100000];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && link_send(&link, FRAME_STDOUT, 1, large, 10) == 0 && link_flush(&link, ends[1]) == 0);
    REQUIRE(link_acknowledge(&link, 1) && link_send(&link, FRAME_STDOUT, 1, large, sizeof large) == 0 && link_flush(&link, ends[1]) == 1);
    before = link;
    REQUIRE(!link_resume(&link, 0) && !link_resume(&link, 3) && memcmp(&before, &link, sizeof link) == 0 && link.frame_left > 0);
    REQUIRE(link_resume(&link, 2));
    close(ends[0]);
    close(ends[1]);
    buffer_free(&link.kept);
}

/* ---- file operations ---------------------------------------------------------------------------------------------- */

static char root[64];

static const char *in_root(const char *name) {
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", root, name);
    return path;
}

static void put_file(const char *name, const char *text, mode_t mode) {
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    REQUIRE(fd >= 0 && fchmod(fd, mode) == 0 && write_all(fd, text, strlen(text)) == 0 && close(fd) == 0);
}

static void require_file(const char *name, const char *text) {
    char content[256] = {0};
    int fd = open(in_root(name), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && read(fd, content, sizeof content - 1) == (ssize_t)strlen(text) && strcmp(content, text) == 0);
    close(fd);
}

static size_t entries(const char *name) {
    DIR *directory = opendir(in_root(name));
    size_t count = 0;
    REQUIRE(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count - 2;
}

struct operation {
    uint8_t what, flags;
    const char *path, *second, *input;
    size_t input_length; /* of an input with NULs in it; otherwise 0 */
    bool cancelled;
    uint64_t offset, length;
};

/* Runs an operation as a worker does, and copies its output to `output` unless that is NULL. */
static uint32_t perform(const struct operation *o, char *output) {
    uint8_t request[3 * PATH_MAX] = {o->what, o->flags}, result[RESULT_MAX];
    const char *second = o->second ? o->second : "";
    size_t path_length = strlen(o->path), second_length = strlen(second);
    put32(request + 4, 0644);
    put64(request + 8, o->offset);
    put64(request + 16, o->length);
    put32(request + 24, (uint32_t)path_length);
    memcpy(request + 28, o->path, path_length);
    put32(request + 28 + path_length, (uint32_t)second_length);
    memcpy(request + 32 + path_length, second, second_length);
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    if (o->input) REQUIRE(write_all(ends[1], o->input, o->input_length ? o->input_length : strlen(o->input)) == 0);
    if (o->what == FILE_WRITE) close(ends[1]);
    uint32_t cancelled = o->cancelled;
    struct worker_report report = {0};
    struct file_job job = {request, 32 + path_length + second_length, ends[o->what == FILE_WRITE ? 0 : 1], &cancelled, &shared};
    file_operation_run(&job, &report, result);
    if (o->what != FILE_WRITE) close(ends[1]);
    ssize_t n = output ? read(ends[0], output, 255) : 0;
    if (output) output[n > 0 ? n : 0] = 0;
    close(ends[0]);
    return report.error;
}

static void a_range_of_a_file_is_read(void) {
    char output[256];
    put_file("digits", "0123456789", 0600);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .path = in_root("digits"), .offset = 3, .length = 4}, output) == 0);
    REQUIRE(strcmp(output, "3456") == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .path = in_root("digits"), .offset = UINT64_MAX}, output) == EINVAL);
}

static void a_short_read_comes_with_its_result(void) {
    static uint8_t request[256] = {FILE_READ, READ_INLINE}, result[RESULT_MAX];
    uint32_t cancelled = 0;
    put_file("short", "0123456789", 0600);
    const char *path = in_root("short");
    put64(request + 8, 3);
    put64(request + 16, 100);
    put32(request + 24, (uint32_t)strlen(path));
    memcpy(request + 28, path, strlen(path));
    struct worker_report report = {0};
    struct file_job job = {request, 32 + strlen(path), -1, &cancelled, &shared};
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == 0 && report.result_length == READ_RESULT_BYTES + 7);
    REQUIRE(get64(result) == 10 && get64(result + 8) == 3 && memcmp(result + READ_RESULT_BYTES, "3456789", 7) == 0);
    put64(request + 16, INLINE_BYTES + 1);
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == EINVAL);
}

static void a_hole_is_skipped_on_request(void) {
    char output[256];
    int fd = open(in_root("sparse"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && pwrite(fd, "data", 4, 1 << 20) == 4 && ftruncate(fd, 1 << 30) == 0);
    REQUIRE(skip_hole(fd, 0, 1 << 30) == 1 << 20 && skip_hole(fd, (1 << 20) + 2, 1 << 30) == (1 << 20) + 2);
    REQUIRE(skip_hole(fd, 1 << 29, 1 << 30) == 1 << 30 && skip_hole(fd, UINT64_C(1) << 31, 1 << 30) == UINT64_C(1) << 31);
    REQUIRE(close(fd) == 0);
    struct operation o = {.what = FILE_READ, .flags = READ_SKIP_HOLE, .path = in_root("sparse"), .offset = 7, .length = 4};
    REQUIRE(perform(&o, output) == 0 && strcmp(output, "data") == 0);
}

static size_t put_extent(char *at, uint64_t offset, const char *bytes, size_t length) {
    put64((uint8_t *)at, offset);
    put32((uint8_t *)at + 8, (uint32_t)length);
    memcpy(at + EXTENT_HEAD_BYTES, bytes, length);
    return EXTENT_HEAD_BYTES + length;
}

static void a_file_is_read_and_written_with_its_holes(void) {
    char output[256], expected[256];
    struct stat st;
    int fd = open(in_root("holes"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && pwrite(fd, "data", 4, 1 << 20) == 4 && pwrite(fd, "more", 4, 1 << 29) == 4 && ftruncate(fd, 1 << 30) == 0);
    REQUIRE(lseek(fd, 0, SEEK_DATA) == 1 << 20 && fstat(fd, &st) == 0 && close(fd) == 0);
    long block = st.st_blksize;
    struct operation o = {.what = FILE_READ, .flags = READ_EXTENTS, .path = in_root("holes"), .length = (1 << 20) + 2};
    REQUIRE(perform(&o, output) == 0);
    size_t size = put_extent(expected, 1 << 20, "da", 2);
    size += put_extent(expected + size, (1 << 20) + 2, "", 0);
    REQUIRE(memcmp(output, expected, size) == 0);

    size = put_extent(expected, 3, "data", 4);
    size += put_extent(expected + size, 7, "!", 1);
    size += put_extent(expected + size, 1 << 29, "more", 4);
    size += put_extent(expected + size, 1 << 30, "", 0);
    struct operation w = {.what = FILE_WRITE, .flags = WRITE_EXTENTS, .path = in_root("written"), .input = expected, .input_length = size};
    REQUIRE(perform(&w, NULL) == 0 && stat(in_root("written"), &st) == 0);
    REQUIRE(st.st_size == 1 << 30 && st.st_blocks * 512 <= 4 * block);
    fd = open(in_root("written"), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && pread(fd, output, 9, 0) == 9 && memcmp(output, "\0\0\0data!", 9) == 0);
    REQUIRE(pread(fd, output, 5, 1 << 29) == 5 && memcmp(output, "more", 5) == 0 && close(fd) == 0);
}

static void an_empty_file_has_only_an_end(void) {
    char output[256], expected[256];
    put_file("nothing", "", 0600);
    memset(output, 1, sizeof output);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .flags = READ_EXTENTS, .path = in_root("nothing"), .length = 5}, output) == 0);
    size_t size = put_extent(expected, 0, "", 0);
    REQUIRE(memcmp(output, expected, size) == 0);
    struct operation w = {.what = FILE_WRITE, .flags = WRITE_EXTENTS, .path = in_root("nothing"), .input = expected, .input_length = size};
    REQUIRE(perform(&w, NULL) == 0);
    require_file("nothing", "");
}

static void extents_that_are_none_change_nothing(void) {
    char input[256];
    put_file("same", "before", 0600);
    struct operation w = {.what = FILE_WRITE, .flags = WRITE_EXTENTS, .path = in_root("same"), .input = input};
    size_t whole = put_extent(input, 5, "abc", 3);
    /* No end, half an extent, half a head. */
    for (size_t size = 1; size <= whole; size++) {
        w.input_length = size;
        REQUIRE(perform(&w, NULL) == EINVAL);
    }
    w.input_length = whole + put_extent(input + whole, 7, "", 0);
    REQUIRE(perform(&w, NULL) == EINVAL);
    w.input_length = whole + put_extent(input + whole, UINT64_MAX, "", 0);
    REQUIRE(perform(&w, NULL) == EINVAL);
    put32((uint8_t *)input + 8, EXTENT_BYTES_MAX + 1);
    REQUIRE(perform(&w, NULL) == EINVAL);
    w.cancelled = true;
    REQUIRE(perform(&w, NULL) == ECANCELED);
    require_file("same", "before");
}

static void a_short_list_comes_with_its_result(void) {
    static uint8_t request[256] = {FILE_LIST, LIST_INLINE}, result[RESULT_MAX];
    uint32_t cancelled = 0;
    REQUIRE(mkdir(in_root("listed"), 0700) == 0);
    const char *path = in_root("listed");
    put32(request + 24, (uint32_t)strlen(path));
    memcpy(request + 28, path, strlen(path));
    struct worker_report report = {0};
    struct file_job job = {request, 32 + strlen(path), -1, &cancelled, &shared};
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == 0 && report.result_length == 0);
    put_file("listed/file", "", 0600);
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == 0 && report.result_length == 8 && memcmp(result, "\1\0\4\0file", 8) == 0);
    char name[256];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "listed/%0240d", i);
        put_file(name, "", 0600);
    }
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == EOVERFLOW && report.result_length == 0);
}

static void a_list_goes_to_its_stream_and_an_empty_one_is_no_error(void) {
    char output[256];
    REQUIRE(mkdir(in_root("streamed"), 0700) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_LIST, .path = in_root("streamed")}, output) == 0 && output[0] == 0);
    REQUIRE(mkdir(in_root("streamed/sub"), 0700) == 0);
    memset(output, 0xee, sizeof output);
    REQUIRE(perform(&(struct operation){.what = FILE_LIST, .path = in_root("streamed")}, output) == 0 && memcmp(output, "\2\0\3\0sub", 8) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_LIST, .path = in_root("nowhere")}, output) == ENOENT);
    REQUIRE(perform(&(struct operation){.what = FILE_LIST, .path = in_root("listed/file")}, output) == ENOTDIR);
}

static void a_short_write_comes_with_its_request(void) {
    static uint8_t request[256] = {FILE_WRITE, WRITE_INLINE}, result[RESULT_MAX];
    uint32_t cancelled = 0;
    const char *path = in_root("inline");
    size_t length = strlen(path);
    put32(request + 4, 0600);
    put32(request + 24, (uint32_t)length);
    memcpy(request + 28, path, length);
    put32(request + 28 + length, 3);
    memcpy(request + 32 + length, "a\0b", 3);
    struct worker_report report = {0};
    struct file_job job = {request, 35 + length, -1, &cancelled, &shared};
    file_operation_run(&job, &report, result);
    struct stat st;
    REQUIRE(report.error == 0 && stat(in_root("inline"), &st) == 0 && st.st_size == 3);
    cancelled = 1;
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == ECANCELED);
}

static size_t add_write(uint8_t *to, const char *path, const char *text) {
    uint32_t path_length = (uint32_t)strlen(path), text_length = (uint32_t)strlen(text);
    memset(to, 0, 28);
    put32(to, 32 + path_length + text_length);
    to[4] = FILE_WRITE;
    to[5] = WRITE_INLINE;
    put32(to + 8, 0600);
    put32(to + 28, path_length);
    memcpy(to + 32, path, path_length);
    put32(to + 32 + path_length, text_length);
    memcpy(to + 36 + path_length, text, text_length);
    return 36 + path_length + text_length;
}

static void a_sequence_ends_with_the_first_write_that_fails(void) {
    static uint8_t request[1024] = {FILE_SEQUENCE}, result[RESULT_MAX];
    uint32_t cancelled = 0;
    size_t size = 32;
    size += add_write(request + size, in_root("first"), "one");
    size += add_write(request + size, in_root("second"), "two");
    size += add_write(request + size, in_root("nowhere/third"), "three");
    size += add_write(request + size, in_root("fourth"), "four");
    put32(request + 28, (uint32_t)(size - 32));
    struct worker_report report = {0};
    struct file_job job = {request, size, -1, &cancelled, &shared};
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == ENOENT && report.result_length == 4 && get32(result) == 2);
    require_file("first", "one");
    require_file("second", "two");
    REQUIRE(access(in_root("fourth"), F_OK) != 0);
    cancelled = 1;
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == ECANCELED && get32(result) == 0);
    put32(request + 28, 7);
    job.size = 39;
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == EINVAL && get32(result) == 0);
}

static void what_is_not_a_regular_file_is_not_read(void) {
    REQUIRE(mkfifo(in_root("fifo"), 0600) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .path = in_root("fifo")}, NULL) == NOT_REGULAR + 4);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .path = "/dev/null"}, NULL) == NOT_REGULAR + 6);
    REQUIRE(perform(&(struct operation){.what = FILE_READ, .path = root}, NULL) == EISDIR);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("fifo"), .input = "x"}, NULL) == NOT_REGULAR + 4);
}

static void put_fifo_in_its_place(void) { REQUIRE(unlink(in_root("changed")) == 0 && mkfifo(in_root("changed"), 0600) == 0); }
static void put_device_in_its_place(void) { REQUIRE(unlink(in_root("changed")) == 0 && symlink("/dev/zero", in_root("changed")) == 0); }

static void what_is_no_regular_file_any_more_when_it_is_opened_is_not_read(void) {
    char output[256];
    struct operation read = {.what = FILE_READ, .path = in_root("changed"), .length = 4};
    put_file("changed", "text", 0600);
    before_open = put_fifo_in_its_place;
    REQUIRE(perform(&read, output) == NOT_REGULAR + 4 && !before_open);
    REQUIRE(unlink(in_root("changed")) == 0);
    put_file("changed", "text", 0600);
    before_open = put_device_in_its_place;
    REQUIRE(perform(&read, output) == NOT_REGULAR + 6 && !before_open && output[0] == 0);
    REQUIRE(unlink(in_root("changed")) == 0);
}

static void a_file_is_replaced_whole_and_keeps_its_mode(void) {
    struct stat st;
    put_file("kept", "before", 0640);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("kept"), .input = "after"}, NULL) == 0);
    require_file("kept", "after");
    REQUIRE(stat(in_root("kept"), &st) == 0 && (st.st_mode & 0777) == 0640);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .flags = 1, .path = in_root("kept"), .input = "never"}, NULL) == EEXIST);
    require_file("kept", "after");
}

static void a_cancelled_write_leaves_the_file_and_nothing_else(void) {
    REQUIRE(mkdir(in_root("quiet"), 0700) == 0);
    put_file("quiet/file", "before", 0600);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("quiet/file"), .input = "half", .cancelled = true}, NULL) == ECANCELED);
    require_file("quiet/file", "before");
    REQUIRE(entries("quiet") == 1);
}

/* A command sends SIGTERM to everything it can reach; a worker has it blocked, and it stays pending for ever. */
static void a_signal_of_a_command_cancels_nothing(void) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    REQUIRE(sigprocmask(SIG_BLOCK, &term, NULL) == 0 && raise(SIGTERM) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("signalled"), .input = "whole"}, NULL) == 0);
    require_file("signalled", "whole");
    signal(SIGTERM, SIG_IGN); /* discards it */
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static void a_write_on_a_file_system_without_unnamed_files_works_too(void) {
    struct temporary new;
    put_file("named", "before", 0600);
    REQUIRE(choose_name(&new, in_root("named")));
    new.fd = open(new.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    new.is_named = true;
    REQUIRE(write_all(new.fd, "after", 5) == 0 && give_name(&new) && close(new.fd) == 0);
    REQUIRE(take_place(&new, in_root("named"), true) == EEXIST && take_place(&new, in_root("named"), false) == 0);
    require_file("named", "after");
}

/* Where the file system has unnamed files, as tmpfs does, a worker that is killed leaves nothing behind. */
static void a_killed_write_leaves_no_temporary_file(void) {
    struct temporary new;
    REQUIRE(mkdir(in_root("clean"), 0700) == 0 && open_temporary(&new, in_root("clean/file")));
    REQUIRE(!new.is_named && entries("clean") == 0 && close(new.fd) == 0 && entries("clean") == 0);
}

static void a_write_follows_links_to_the_file(void) {
    struct stat st;
    put_file("target", "before", 0600);
    REQUIRE(symlink("target", in_root("near")) == 0 && symlink(in_root("near"), in_root("far")) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("far"), .input = "through"}, NULL) == 0);
    require_file("target", "through");
    REQUIRE(lstat(in_root("far"), &st) == 0 && S_ISLNK(st.st_mode));
    REQUIRE(symlink("loop", in_root("loop")) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = in_root("loop"), .input = "x"}, NULL) == ELOOP);
}

static uint32_t perform_without_links(struct operation o) {
    o.flags |= PATH_WITHOUT_LINKS;
    uint32_t error = perform(&o, NULL);
    char here[PATH_MAX];
    REQUIRE(getcwd(here, sizeof here) && strcmp(here, "/") == 0);
    return error;
}

static void put_tree_and_links(void) {
    REQUIRE(mkdir(in_root("tree"), 0700) == 0 && mkdir(in_root("tree/inner"), 0700) == 0);
    put_file("tree/file", "before", 0600);
    REQUIRE(symlink("tree", in_root("to-tree")) == 0 && symlink("file", in_root("tree/to-file")) == 0);
}

static void no_link_is_followed_where_none_is_to_be(void) {
    put_tree_and_links();
    for (uint8_t what = FILE_READ; what <= FILE_REMOVE; what++) {
        if (what == FILE_LIST) continue;
        struct operation through = {.what = what, .path = in_root("to-tree/file"), .input = what == FILE_WRITE ? "x" : NULL};
        through.second = what == FILE_RENAME ? in_root("tree/renamed") : NULL;
        REQUIRE(perform_without_links(through) == ELOOP);
    }
    REQUIRE(perform_without_links((struct operation){.what = FILE_RENAME, .path = in_root("tree/file"), .second = in_root("to-tree/renamed")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_RENAME, .path = in_root("tree/file"), .second = in_root("tree/inner")}) == EISDIR);
    REQUIRE(perform_without_links((struct operation){.what = FILE_MKDIR, .flags = 1, .path = in_root("to-tree/new/newer")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_MKDIR, .flags = 1, .path = in_root("to-tree")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_REMOVE, .flags = 1, .path = in_root("to-tree/inner")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_READ, .path = in_root("tree/to-file")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_STAT, .path = in_root("tree/to-file")}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_WRITE, .path = in_root("tree/to-file"), .input = "x"}) == ELOOP);
    REQUIRE(perform_without_links((struct operation){.what = FILE_LIST, .path = in_root("tree")}) == EINVAL);
    REQUIRE(entries("tree") == 3 && entries("tree/inner") == 0);
    require_file("tree/file", "before");
}

static void what_has_no_link_on_its_way_is_reached_without_them(void) {
    char output[256];
    struct stat st;
    struct operation read = {.what = FILE_READ, .flags = PATH_WITHOUT_LINKS, .path = in_root("tree//./inner/../file")};
    REQUIRE(perform(&read, output) == 0 && strcmp(output, "before") == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_WRITE, .path = in_root("tree/file"), .input = "after"}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_WRITE, .flags = WRITE_NEW, .path = in_root("tree/beside"), .input = "new"}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_STAT, .flags = 1, .path = in_root("tree/to-file")}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_MKDIR, .path = in_root("tree/new/")}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_MKDIR, .flags = 1, .path = in_root("tree/new/newer/newest")}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_MKDIR, .flags = 1, .path = "/"}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_RENAME, .path = in_root("tree/to-file"), .second = in_root("tree/new/newer/link")}) == 0);
    REQUIRE(lstat(in_root("tree/new/newer/link"), &st) == 0 && S_ISLNK(st.st_mode));
    REQUIRE(perform_without_links((struct operation){.what = FILE_REMOVE, .path = in_root("tree/new/newer/link")}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_REMOVE, .flags = 1, .path = in_root("tree/new")}) == 0);
    REQUIRE(perform_without_links((struct operation){.what = FILE_STAT, .path = in_root("tree/file/below")}) == ENOTDIR);
    REQUIRE(perform_without_links((struct operation){.what = FILE_STAT, .path = in_root("tree/absent/below")}) == ENOENT);
    REQUIRE(entries("tree") == 3);
    require_file("tree/file", "after");
    require_file("tree/beside", "new");
}

static void in_a_sequence_each_write_has_its_own_word_on_links(void) {
    static uint8_t request[1024] = {FILE_SEQUENCE}, result[RESULT_MAX];
    uint32_t cancelled = 0;
    size_t first = add_write(request + 32, in_root("to-tree/through"), "one"), second = 32 + first;
    size_t size = second + add_write(request + second, in_root("to-tree/never"), "two");
    request[second + 5] |= PATH_WITHOUT_LINKS;
    put32(request + 28, (uint32_t)(size - 32));
    struct worker_report report = {0};
    struct file_job job = {request, size, -1, &cancelled, &shared};
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == ELOOP && get32(result) == 1);
    require_file("tree/through", "one");
    REQUIRE(access(in_root("tree/never"), F_OK) != 0);
}

/* Makes the name a directory and a link in turn, as fast as the kernel can, until it is killed. */
static pid_t spawn_swapping(const char *one, const char *other) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) REQUIRE(renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0);
}

/* Writes again and again, until a write follows the link. True if one did. */
static bool escapes(uint8_t flags, int tries) {
    for (int i = 0; i < tries && access(in_root("protected/file"), F_OK) != 0; i++) {
        uint32_t error = perform(&(struct operation){.what = FILE_WRITE, .flags = flags, .path = in_root("swapped/file"), .input = "escaped"}, NULL);
        REQUIRE(!flags || error == 0 || error == ELOOP);
    }
    return unlink(in_root("protected/file")) == 0;
}

static void a_link_that_comes_and_goes_is_never_followed(void) {
    static char swapped[PATH_MAX], link[PATH_MAX];
    REQUIRE(mkdir(in_root("swapped"), 0700) == 0 && mkdir(in_root("protected"), 0700) == 0 && symlink("protected", in_root("link")) == 0);
    strcpy(swapped, in_root("swapped"));
    strcpy(link, in_root("link"));
    pid_t pid = spawn_swapping(swapped, link);
    REQUIRE(escapes(0, 100000) && !escapes(PATH_WITHOUT_LINKS, 2000) && escapes(0, 100000));
    REQUIRE(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void a_tree_deeper_than_any_path_is_removed(void) {
    REQUIRE(mkdir(in_root("deep"), 0700) == 0 && chdir(in_root("deep")) == 0);
    for (int i = 0; i < 3000; i++) {
        REQUIRE(mkdir("directory", 0700) == 0);
        if (i % 1000 == 0) REQUIRE(close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0 && symlink("/etc", "link") == 0);
        REQUIRE(chdir("directory") == 0);
    }
    REQUIRE(chdir("/") == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_REMOVE, .path = in_root("deep")}, NULL) == ENOTEMPTY);
    REQUIRE(perform(&(struct operation){.what = FILE_REMOVE, .flags = 1, .path = in_root("deep")}, NULL) == 0);
    REQUIRE(access(in_root("deep"), F_OK) != 0 && access("/etc/passwd", F_OK) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_REMOVE, .path = in_root("deep")}, NULL) == ENOENT);
    REQUIRE(perform(&(struct operation){.what = FILE_REMOVE, .flags = 2, .path = in_root("deep")}, NULL) == 0);
}

static void a_removal_does_not_follow_a_directory_that_is_moved_away(void) {
    struct descent way = {0};
    REQUIRE(mkdir(in_root("removed"), 0700) == 0 && mkdir(in_root("removed/inner"), 0700) == 0 && mkdir(in_root("elsewhere"), 0700) == 0);
    put_file("elsewhere/precious", "stays", 0600);
    REQUIRE(chdir(in_root("removed")) == 0 && go_down(&way, "inner", 0) == 0);
    REQUIRE(rename(in_root("removed/inner"), in_root("elsewhere/inner")) == 0);
    REQUIRE(go_up(&way) == ESTALE);
    free(way.places);
    REQUIRE(chdir("/") == 0);
    require_file("elsewhere/precious", "stays");
}

static void a_cancelled_removal_stops(void) {
    REQUIRE(mkdir(in_root("large"), 0700) == 0);
    put_file("large/file", "", 0600);
    REQUIRE(perform(&(struct operation){.what = FILE_REMOVE, .flags = 1, .path = in_root("large"), .cancelled = true}, NULL) == ECANCELED);
    REQUIRE(entries("large") == 1);
}

static void relative_paths_and_paths_too_long_are_refused(void) {
    static char path[PATH_MAX + 8];
    memset(path, 'a', PATH_MAX);
    path[0] = '/';
    REQUIRE(perform(&(struct operation){.what = FILE_STAT, .path = "etc"}, NULL) == EINVAL);
    path[PATH_MAX - 1] = 0;
    REQUIRE(perform(&(struct operation){.what = FILE_STAT, .path = path}, NULL) == ENAMETOOLONG);
    REQUIRE(perform(&(struct operation){.what = FILE_RENAME, .path = in_root("target"), .second = "b"}, NULL) == EINVAL);
}

/* A path of this length that leads to `name` in the root. */
static const char *lengthened(const char *name, size_t length) {
    static char paths[2][2 * PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 2];
    size_t before = strlen(root), after = strlen(name);
    memcpy(path, root, before);
    memset(path + before, '/', length - before - after);
    memcpy(path + length - after, name, after + 1);
    return path;
}

static void a_path_may_be_as_long_as_the_kernel_takes_it_and_no_longer(void) {
    static const size_t too_long[] = {PATH_MAX, PATH_MAX + 1, PATH_MAX + 200};
    put_file("long", "text", 0600);
    REQUIRE(perform(&(struct operation){.what = FILE_STAT, .path = lengthened("long", PATH_MAX - 1)}, NULL) == 0);
    REQUIRE(perform(&(struct operation){.what = FILE_RENAME, .path = in_root("long"), .second = lengthened("longer", PATH_MAX - 1)}, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        REQUIRE(perform(&(struct operation){.what = FILE_STAT, .path = lengthened("longer", too_long[i])}, NULL) == ENAMETOOLONG);
        REQUIRE(perform(&(struct operation){.what = FILE_RENAME, .path = in_root("longer"), .second = lengthened("long", too_long[i])}, NULL) == ENAMETOOLONG);
    }
    require_file("longer", "text");
}

/* Writes through a link. Its target replaces its name, behind the path of its directory. */
static uint32_t write_through(const char *target, size_t directory_length) {
    unlink(in_root("link-to-long"));
    REQUIRE(symlink(target, in_root("link-to-long")) == 0);
    return perform(&(struct operation){.what = FILE_WRITE, .path = lengthened("link-to-long", directory_length + 12), .input = "through"}, NULL);
}

static void a_link_does_not_make_a_path_too_long(void) {
    static const char target[] = "./a-name-that-leaves-room-for-a-temporary-one";
    size_t most = PATH_MAX - sizeof target;
    put_file(target, "before", 0600);
    REQUIRE(write_through(target, most + 1) == ENAMETOOLONG && write_through(target, most + 10) == ENAMETOOLONG);
    require_file(target, "before");
    REQUIRE(write_through(target, most) == 0);
    require_file(target, "through");
}

static void the_name_of_a_temporary_file_is_not_cut(void) {
    struct temporary new;
    REQUIRE(!choose_name(&new, lengthened("long", PATH_MAX - 1)) && errno == ENAMETOOLONG);
    REQUIRE(perform(&(struct operation){.what = FILE_WRITE, .path = lengthened("long", PATH_MAX - 1), .input = "x"}, NULL) == ENAMETOOLONG);
    REQUIRE(choose_name(&new, lengthened("a-name-that-leaves-room-for-a-temporary-one", PATH_MAX - 1)));
}

/* Runs an operation whose second string may have any bytes, and returns what comes with its result. */
static uint32_t perform_bytes(uint8_t what, const char *path, const char *second, uint32_t second_length, uint8_t *result, uint32_t *length) {
    uint8_t request[2 * PATH_MAX] = {what};
    const uint32_t never = 0;
    size_t path_length = strlen(path);
    put32(request + 24, (uint32_t)path_length);
    memcpy(request + 28, path, path_length);
    put32(request + 28 + path_length, second_length);
    memcpy(request + 32 + path_length, second, second_length);
    struct worker_report report = {0};
    struct file_job job = {request, 32 + path_length + second_length, -1, &never, &shared};
    file_operation_run(&job, &report, result);
    *length = report.result_length;
    return report.error;
}

static void require_description(const char *name, uint8_t flags, const char *target) {
    static uint8_t result[RESULT_MAX];
    uint8_t request[PATH_MAX] = {FILE_STAT, flags};
    const uint32_t never = 0;
    struct stat st;
    size_t path_length = strlen(in_root(name)), target_length = strlen(target);
    put32(request + 24, (uint32_t)path_length);
    memcpy(request + 28, in_root(name), path_length);
    struct worker_report report = {0};
    struct file_job job = {request, 32 + path_length, -1, &never, &shared};
    memset(result, 0xee, sizeof result);
    file_operation_run(&job, &report, result);
    REQUIRE(report.error == 0 && lstat(in_root(name), &st) == 0 && report.result_length == STAT_RECORD_BYTES + target_length);
    REQUIRE(result[0] == file_type(st.st_mode) && result[1] == 0 && result[2] == 0 && result[3] == 0);
    REQUIRE(get32(result + 4) == (st.st_mode & 07777) && get32(result + 8) == st.st_uid && get32(result + 12) == st.st_gid);
    REQUIRE(get64(result + 16) == (uint64_t)st.st_size && get64(result + 24) == (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
    REQUIRE(get64(result + 32) == st.st_dev && get64(result + 40) == st.st_ino && get32(result + 48) == target_length);
    REQUIRE(memcmp(result + STAT_RECORD_BYTES, target, target_length) == 0);
}

static void a_description_says_everything_about_a_name(void) {
    const struct timespec times[2] = {{1, 2}, {1234567890, 123456789}};
    put_file("described", "0123456789", 06751);
    REQUIRE(chown(in_root("described"), 0x01020304, 0x05060708) == 0 && chmod(in_root("described"), 06751) == 0);
    REQUIRE(utimensat(AT_FDCWD, in_root("described"), times, 0) == 0 && symlink("some/where", in_root("a-link")) == 0);
    require_description("described", 0, "");
    require_description("a-link", STAT_LINK_ITSELF, "some/where");
    require_description("fifo", 0, "");
    REQUIRE(perform(&(struct operation){.what = FILE_STAT, .path = in_root("a-link")}, NULL) == ENOENT);
}

static void times_go_as_far_as_the_numbers(void) {
    REQUIRE(file_time((struct timespec){3, 5}) == 3000000005 && file_time((struct timespec){-3, 5}) == -2999999995);
    REQUIRE(file_time((struct timespec){INT64_MAX, 0}) == INT64_MAX && file_time((struct timespec){INT64_MIN, 0}) == INT64_MIN);
    REQUIRE(file_time((struct timespec){9223372036, 854775807}) == INT64_MAX && file_time((struct timespec){9223372036, 854775808}) == INT64_MAX);
    static const int64_t all[] = {0, 1, -1, 999999999, 1000000000, -1000000000, -1000000001, 1234567890123456789, INT64_MAX, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct timespec time = file_timespec(all[i]);
        REQUIRE(time.tv_nsec >= 0 && time.tv_nsec < 1000000000 && (__int128)time.tv_sec * 1000000000 + time.tv_nsec == all[i]);
    }
    REQUIRE(file_timespec(INT64_MIN).tv_nsec == UTIME_OMIT);
}

static void only_regular_files_are_written_and_read(void) {
    REQUIRE(file_refuse_irregular(S_IFREG) == 0 && file_refuse_irregular(S_IFLNK) == ELOOP && file_refuse_irregular(S_IFDIR) == EISDIR);
    static const mode_t others[] = {0, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
    static const uint8_t types[] = {ENTRY_UNKNOWN, ENTRY_FIFO, ENTRY_SOCKET, ENTRY_CHAR_DEVICE, ENTRY_BLOCK_DEVICE};
    for (size_t i = 0; i < sizeof types; i++) REQUIRE(file_type(others[i]) == types[i] && file_refuse_irregular(others[i]) == NOT_REGULAR + types[i]);
}

/* Three directories, of which the second string has two, each with a NUL behind it. */
static void a_question_for_changes_has_all_its_directories(void) {
    static uint8_t result[RESULT_MAX];
    char second[256];
    uint32_t length;
    REQUIRE(mkdir(in_root("base"), 0700) == 0 && mkdir(in_root("upper"), 0700) == 0);
    int size = snprintf(second, sizeof second, "%s%c%s%c", in_root("base"), 0, in_root("upper"), 0);
    uint32_t one = (uint32_t)strlen(second) + 1;
    REQUIRE(perform_bytes(FILE_CHANGES, in_root("base"), second, (uint32_t)size, result, &length) == 0 && length == CHANGES_RESULT_BYTES);
    REQUIRE(perform_bytes(FILE_CHANGES, in_root("base"), second, 0, result, &length) == EINVAL);
    REQUIRE(perform_bytes(FILE_CHANGES, in_root("base"), second, one, result, &length) == EINVAL);
    REQUIRE(perform_bytes(FILE_CHANGES, in_root("base"), second, one - 1, result, &length) == EINVAL);
    REQUIRE(perform_bytes(FILE_CHANGES, in_root("base"), second, (uint32_t)size - 1, result, &length) == EINVAL);
}

/* ---- requests and addresses as bytes ------------------------------------------------------------------------------- */

static size_t add_string(uint8_t *out, const char *text) {
    put32(out, (uint32_t)strlen(text));
    memcpy(out + 4, text, strlen(text));
    return 4 + strlen(text);
}

static void a_request_for_a_command_is_read_field_by_field(void) {
    uint8_t request[256] = {0};
    request[0] = 0xa5;
    put16(request + 2, 0x1234);
    put16(request + 4, 0x5678);
    put32(request + 8, 0x01020304);
    put32(request + 12, 0x0a0b0c0d);
    size_t size = SPAWN_HEAD_BYTES;
    size += add_string(request + size, "/tmp");
    put32(request + size, 2);
    size += 4;
    size += add_string(request + size, "echo");
    size += add_string(request + size, "");
    put32(request + size, 1);
    size += 4;
    size += add_string(request + size, "A=b");
    struct spawn_request read;
    REQUIRE(spawn_parse(request, size, &read));
    REQUIRE(read.flags == 0xa5 && read.rows == 0x1234 && read.cols == 0x5678);
    REQUIRE(read.timeout_ms == 0x01020304 && read.grace_ms == 0x0a0b0c0d && read.argc == 2 && read.envc == 1);
    char store[256], *argv[3], *envp[2], *cwd;
    spawn_strings(&read, store, argv, envp, &cwd);
    REQUIRE(strcmp(cwd, "/tmp") == 0 && strcmp(argv[0], "echo") == 0 && strcmp(argv[1], "") == 0 && !argv[2]);
    REQUIRE(strcmp(envp[0], "A=b") == 0 && !envp[1]);
    for (size_t shorter = 0; shorter < size; shorter++) REQUIRE(!spawn_parse(request, shorter, &read));
    REQUIRE(!spawn_parse(request, size + 1, &read));
    request[size - 1] = 0;
    REQUIRE(!spawn_parse(request, size, &read));
}

static bool address_reads(const uint8_t *bytes, int at, uint8_t other) {
    uint8_t changed[ADDRESS_BYTES];
    union address address;
    memcpy(changed, bytes, sizeof changed);
    changed[at] = other;
    return address_parse(changed, &address);
}

static void an_address_is_one_of_loopback_written_in_one_way(void) {
    uint8_t v4[ADDRESS_BYTES] = {4, 0, 0x90, 0x1f, 127, 84, 3, 2}, v6[ADDRESS_BYTES] = {6, 0, 0x90, 0x1f}, written[ADDRESS_BYTES];
    v6[ADDRESS_BYTES - 1] = 1;
    union address address;
    REQUIRE(address_parse(v4, &address) && address.v4.sin_family == AF_INET && ntohs(address.v4.sin_port) == 8080);
    REQUIRE(ntohl(address.v4.sin_addr.s_addr) == 0x7f540302 && address_size(&address) == sizeof address.v4);
    address_write(&address, written);
    REQUIRE(memcmp(written, v4, sizeof v4) == 0);
    REQUIRE(address_parse(v6, &address) && address.v6.sin6_family == AF_INET6 && ntohs(address.v6.sin6_port) == 8080);
    REQUIRE(IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr) && address_size(&address) == sizeof address.v6);
    address_write(&address, written);
    REQUIRE(memcmp(written, v6, sizeof v6) == 0);
    REQUIRE(!address_reads(v4, 0, 5) && !address_reads(v4, 1, 1) && !address_reads(v4, 4, 126) && !address_reads(v4, 4, 128));
    for (int at = 8; at < (int)ADDRESS_BYTES; at++) REQUIRE(!address_reads(v4, at, 1));
    REQUIRE(!address_reads(v6, 0, 4) && !address_reads(v6, 1, 1) && !address_reads(v6, ADDRESS_BYTES - 1, 2));
    for (int at = 4; at < (int)ADDRESS_BYTES - 1; at++) REQUIRE(!address_reads(v6, at, 1));
    address.any.sa_family = AF_UNIX;
    address_write(&address, written);
    for (int at = 0; at < (int)ADDRESS_BYTES; at++) REQUIRE(written[at] == 0);
}

/* ---- process trees ------------------------------------------------------------------------------------------------ */

/* Starts a process with a session of its own whose parent is gone, so it becomes a child of this process, a subreaper. */
static void spawn_daemon(int ready) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) {
        REQUIRE(waitpid(pid, NULL, 0) == pid);
        return;
    }
    setsid();
    if (fork() != 0) _exit(0);
    signal(SIGTERM, SIG_IGN);
    REQUIRE(write_all(ready, "x", 1) == 0);
    for (;;) pause();
}

static void a_tree_is_killed_with_its_daemons(void) {
    int ends[2];
    char byte;
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    for (int i = 0; i < 5; i++) spawn_daemon(ends[1]);
    for (int i = 0; i < 5; i++) REQUIRE(read(ends[0], &byte, 1) == 1);
    REQUIRE(tree_signal(getpid(), SIGTERM) == 5); /* ignored */
    REQUIRE(tree_kill(getpid()) == 5);
    for (int i = 0; i < 5; i++) {
        int status;
        REQUIRE(waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    REQUIRE(tree_kill(getpid()) == 0 && waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
    close(ends[0]);
    close(ends[1]);
}

static int told;

static void tell(int number) {
    (void)number;
    if (write_all(told, "t", 1) != 0) abort();
}

/* Starts a child, which starts a child, and so on. Each of them writes "r" when it is ready, and "t" when it gets SIGTERM. */
static void spawn_below(int generations) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) return;
    signal(SIGTERM, tell);
    if (generations > 1) spawn_below(generations - 1);
    if (write_all(told, "r", 1) != 0) abort();
    for (;;) pause();
}

static void a_signal_reaches_a_tree_of_any_depth(void) {
    int ends[2];
    char byte;
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    told = ends[1];
    spawn_below(4);
    for (int i = 0; i < 4; i++) REQUIRE(read(ends[0], &byte, 1) == 1 && byte == 'r');
    REQUIRE(tree_signal(getpid(), SIGTERM) == 4);
    for (int i = 0; i < 4; i++) REQUIRE(read(ends[0], &byte, 1) == 1 && byte == 't');
    while (tree_kill(getpid()) > 0 || waitpid(-1, NULL, WNOHANG) >= 0) continue;
    close(ends[0]);
    close(ends[1]);
}

static void *say_that_it_runs(void *ready) {
    if (write_all(*(int *)ready, "x", 1) != 0) abort();
    for (;;) pause();
}

static void a_process_whose_first_thread_has_ended_is_killed(void) {
    int ends[2];
    char byte;
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, say_that_it_runs, &ends[1]) != 0) abort();
        syscall(SYS_exit, 0);
    }
    REQUIRE(pid > 0 && read(ends[0], &byte, 1) == 1);
    siginfo_t info = {0};
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (!strstr(text, ") Z ")) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof text - 1);
        REQUIRE(n > 0);
        text[n] = 0;
        close(fd);
    }
    REQUIRE(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0);
    REQUIRE(tree_kill(getpid()) == 1);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    close(ends[0]);
    close(ends[1]);
}

static void a_zombie_is_not_killed_again(void) {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    siginfo_t info;
    REQUIRE(pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    REQUIRE(tree_kill(getpid()) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void a_parent_is_found_behind_any_name(void) {
    REQUIRE(prctl(PR_SET_NAME, "a) R 1 (b") == 0);
    REQUIRE(parent_of(getpid()) == getppid() && parent_of(0) == -1);
}

/* ---- why commands fail -------------------------------------------------------------------------------------------- */

static int file_with(const char *text) {
    int fd = memfd_create("counter", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

static const struct counters none = {-1, -1, {-1, -1}, -1, -1, -1, -1, -1, -1, -1};

static void counts_are_read_under_both_versions_of_cgroup(void) {
    struct counts unknown = counters_read(&none);
    REQUIRE(unknown.memory_kills == COUNT_UNKNOWN && unknown.limit_hits == COUNT_UNKNOWN && unknown.refused_forks == COUNT_UNKNOWN);
    struct counters v2 = none, v1 = none;
    v2.memory_events = file_with("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 5\n");
    v2.refused_forks = file_with("max 18446744073709551614\n");
    struct counts counts = counters_read(&v2);
    REQUIRE(counts.memory_kills == 3 && counts.limit_hits == 2 && counts.refused_forks == UINT64_MAX - 1);
    v1.memory_kills = file_with("oom_kill_disable 7\nunder_oom 8\noom_kill 4\n");
    v1.refused_forks = file_with("");
    counts = counters_read(&v1);
    REQUIRE(counts.memory_kills == 4 && counts.limit_hits == COUNT_UNKNOWN && counts.refused_forks == COUNT_UNKNOWN);
}

static void the_limit_of_processors_is_read_under_both_versions_of_cgroup(void) {
    REQUIRE(counters_throttled(&none) == COUNT_UNKNOWN && counters_cpu_limit(&none).thousandths == COUNT_UNKNOWN);
    struct counters v2 = none, v1 = none;
    v2.cpu_stat = file_with("usage_usec 1\nuser_usec 1\nsystem_usec 0\nnr_periods 40\nnr_throttled 30\nthrottled_usec 2\n");
    v2.cpu_limit = file_with("150000 100000\n");
    REQUIRE(counters_throttled(&v2) == 30);
    struct cpu_limit limit = counters_cpu_limit(&v2);
    REQUIRE(limit.thousandths == 1500 && limit.period_us == 100000);
    v1.cpu_limit = file_with("50000\n");
    REQUIRE(counters_cpu_limit(&v1).thousandths == COUNT_UNKNOWN);
    v1.cpu_period = file_with("100000\n");
    REQUIRE(counters_cpu_limit(&v1).thousandths == 500 && counters_cpu_limit(&v1).period_us == 100000);
    static const char *const without[] = {"max 100000\n", "-1\n", "", "1000 0\n", "99999999999999999999 1\n"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        struct counters c = none;
        c.cpu_limit = file_with(without[i]);
        REQUIRE(counters_cpu_limit(&c).thousandths == COUNT_UNKNOWN);
    }
}

/* Whether files with these texts say that memory is taken. */
static bool is_taken(const char *limit, const char *used, const char *parts) {
    int limit_fd = file_with(limit), total = file_with(used), parts_fd = file_with(parts);
    bool taken = takes_most(read_number(limit_fd), total, parts_fd);
    close(limit_fd);
    close(total);
    close(parts_fd);
    return taken;
}

static void memory_is_taken_by_what_cannot_be_given_back(void) {
    static const char *const v1 = "cache 500\nrss 10\nshmem 480\n", *const v2 = "anon 10\nfile 500\nkernel 5\nshmem 480\n";
    REQUIRE(!counters_memory_is_taken(&none) && !takes_most(read_number(-1), -1, -1));
    REQUIRE(is_taken("512\n", "510\n", v1) && is_taken("512\n", "510\n", v2));
    REQUIRE(!is_taken("1000\n", "510\n", v1) && !is_taken("max\n", "510\n", v2) && !is_taken("512\n", "", v2));
    /* Files that the kernel only has at hand. */
    REQUIRE(!is_taken("512\n", "510\n", "cache 500\nshmem 10\n") && !is_taken("512\n", "510\n", "file 500\nshmem 0\n"));
    REQUIRE(is_taken("400\n", "300\n", "file 0\nshmem 0\n") && !is_taken("400\n", "299\n", "file 0\nshmem 0\n"));
    /* Counts that do not fit together are those of different moments. */
    REQUIRE(!is_taken("512\n", "400\n", "cache 500\nshmem 10\n") && is_taken("512\n", "510\n", "cache 5\nshmem 9\n") && is_taken("512\n", "510\n", ""));
}

static void a_limit_is_the_containers_own_only_if_it_was_reached(void) {
    struct counters c = none;
    struct counts before = {.limit_hits = 2}, now = before;
    c.memory_limit = file_with("1073741824\n");
    REQUIRE(counters_memory_limit(&c, &before, &now) == COUNT_UNKNOWN);
    now.limit_hits = 3;
    REQUIRE(counters_memory_limit(&c, &before, &now) == 1u << 30);
    before.limit_hits = now.limit_hits = COUNT_UNKNOWN;
    REQUIRE(counters_memory_limit(&c, &before, &now) == COUNT_UNKNOWN);
    c.most_memory[0] = file_with("1000000000\n");
    REQUIRE(counters_memory_limit(&c, &before, &now) == COUNT_UNKNOWN);
    c.most_memory[1] = file_with("1073733632\n");
    REQUIRE(counters_memory_limit(&c, &before, &now) == 1u << 30);
    c.process_limit = file_with("64\n");
    REQUIRE(counters_process_limit(&c) == 64); /* a kernel that does not say how many there were */
    c.most_processes = file_with("63\n");
    REQUIRE(counters_process_limit(&c) == COUNT_UNKNOWN);
    c.most_processes = file_with("64\n");
    REQUIRE(counters_process_limit(&c) == 64);
    c.process_limit = file_with("max\n");
    REQUIRE(counters_process_limit(&c) == COUNT_UNKNOWN);
}

static void require_room(const struct room *room, const char *path, bool is_in_memory, uint64_t device) {
    REQUIRE(strcmp(room->path, path) == 0 && room->is_in_memory == is_in_memory && room->device == device);
}

static void rooms_are_what_can_be_written_to_and_is_on_this_machine(void) {
    char mountinfo[] = "1 0 0:5 / / ro,relatime - overlay overlay rw,lowerdir=a\n"
                       "2 1 0:6 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1k\n"
                       "3 1 254:1 /a\\040b /a\\040b\\134\\012c rw shared:1 master:2 - ext4 /dev/vda rw\n"
                       "4 1 0:7 / /far rw - nfs4 server:/ rw\n"
                       "5 1 0:8 / /served rw - fuse.sshfs a rw\n"
                       "6 1 0:9 / /proc/acpi rw - tmpfs tmpfs rw\n"
                       "7 1 0:10 / /processes rw - tmpfs tmpfs rw\n"
                       "8 1 0:11 / /rwx norw,rwx - tmpfs tmpfs rw\n"
                       "9 1 0:12 / relative rw - tmpfs tmpfs rw\n"
                       "10 1 x:y / /bad rw - tmpfs tmpfs rw\n"
                       "11 1 0:13 / /cut rw\n"
                       "12";
    struct rooms rooms = {.count = 0};
    rooms_parse(&rooms, mountinfo);
    REQUIRE(rooms.count == 3);
    require_room(&rooms.list[0], "/tmp", true, 6);
    require_room(&rooms.list[1], "/a b\\\nc", false, UINT64_C(254) << 32 | 1);
    require_room(&rooms.list[2], "/processes", true, 10);
    for (int i = 0; i < rooms.count; i++) free(rooms.list[i].path);
}

static void there_are_no_more_rooms_than_there_is_place_for(void) {
    char mountinfo[8192] = "";
    for (int i = 0; i < 2 * ROOMS_MAX; i++) strcat(mountinfo, "2 1 0:6 / /tmp rw - tmpfs tmpfs rw\n");
    struct rooms rooms = {.count = 0};
    rooms_parse(&rooms, mountinfo);
    REQUIRE(rooms.count == ROOMS_MAX);
    for (int i = 0; i < rooms.count; i++) free(rooms.list[i].path);
}

/* ------------------------------------------------------------------------------------------------------------------- */

#define TEST(name) {#name, name}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    TEST(digests_are_those_of_the_standard),
    TEST(numbers_are_little_endian),
    TEST(a_buffer_gives_back_what_a_burst_took),
    TEST(an_acknowledgement_of_what_was_not_sent_is_refused),
    TEST(the_count_towards_an_ack_begins_again_with_a_connection),
    TEST(a_resumption_that_is_refused_changes_nothing),
    TEST(a_range_of_a_file_is_read),
    TEST(a_short_read_comes_with_its_result),
    TEST(a_hole_is_skipped_on_request),
    TEST(a_file_is_read_and_written_with_its_holes),
    TEST(an_empty_file_has_only_an_end),
    TEST(extents_that_are_none_change_nothing),
    TEST(a_short_list_comes_with_its_result),
    TEST(a_list_goes_to_its_stream_and_an_empty_one_is_no_error),
    TEST(a_short_write_comes_with_its_request),
    TEST(a_sequence_ends_with_the_first_write_that_fails),
    TEST(what_is_not_a_regular_file_is_not_read),
    TEST(what_is_no_regular_file_any_more_when_it_is_opened_is_not_read),
    TEST(a_file_is_replaced_whole_and_keeps_its_mode),
    TEST(a_cancelled_write_leaves_the_file_and_nothing_else),
    TEST(a_signal_of_a_command_cancels_nothing),
    TEST(a_write_on_a_file_system_without_unnamed_files_works_too),
    TEST(a_killed_write_leaves_no_temporary_file),
    TEST(a_write_follows_links_to_the_file),
    TEST(no_link_is_followed_where_none_is_to_be),
    TEST(what_has_no_link_on_its_way_is_reached_without_them),
    TEST(in_a_sequence_each_write_has_its_own_word_on_links),
    TEST(a_link_that_comes_and_goes_is_never_followed),
    TEST(a_tree_deeper_than_any_path_is_removed),
    TEST(a_removal_does_not_follow_a_directory_that_is_moved_away),
    TEST(a_cancelled_removal_stops),
    TEST(relative_paths_and_paths_too_long_are_refused),
    TEST(a_path_may_be_as_long_as_the_kernel_takes_it_and_no_longer),
    TEST(a_link_does_not_make_a_path_too_long),
    TEST(the_name_of_a_temporary_file_is_not_cut),
    TEST(a_description_says_everything_about_a_name),
    TEST(times_go_as_far_as_the_numbers),
    TEST(only_regular_files_are_written_and_read),
    TEST(a_question_for_changes_has_all_its_directories),
    TEST(a_request_for_a_command_is_read_field_by_field),
    TEST(an_address_is_one_of_loopback_written_in_one_way),
    TEST(a_tree_is_killed_with_its_daemons),
    TEST(a_signal_reaches_a_tree_of_any_depth),
    TEST(a_process_whose_first_thread_has_ended_is_killed),
    TEST(a_zombie_is_not_killed_again),
    TEST(a_parent_is_found_behind_any_name),
    TEST(counts_are_read_under_both_versions_of_cgroup),
    TEST(the_limit_of_processors_is_read_under_both_versions_of_cgroup),
    TEST(a_limit_is_the_containers_own_only_if_it_was_reached),
    TEST(memory_is_taken_by_what_cannot_be_given_back),
    TEST(rooms_are_what_can_be_written_to_and_is_on_this_machine),
    TEST(there_are_no_more_rooms_than_there_is_place_for),
};

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0); /* a forked child would print a second time what is left in the buffer */
    snprintf(root, sizeof root, "/tmp/brig-unit-XXXXXX");
    REQUIRE(mkdtemp(root));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        tests[i].run();
        printf("ok %s\n", tests[i].name);
    }
    static char path[64];
    snprintf(path, sizeof path, "%s", root);
    return (int)perform(&(struct operation){.what = FILE_REMOVE, .flags = 1, .path = path}, NULL);
}
