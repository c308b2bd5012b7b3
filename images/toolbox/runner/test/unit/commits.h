/* Makes commits by calling commit_run, without a runner around it. For a program that includes ../../commit.c or is linked with it. */
#ifndef BRIG_UNIT_COMMITS_H
#define BRIG_UNIT_COMMITS_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../runner-files/commit.h"
#include "../../../runner-files/file-stat.h"
#include "../../../common/job.h"
#include "../../../runner-files/file-protocol.h"
#include "../../../common/wire.h"
#include "root.h"

/* The value of an owner or group in a record that is not to be changed. */
#define AS_IT_IS UINT32_MAX

static uint8_t records[1 << 20], answer[RESULT_MAX];
static size_t records_size;
static struct file_result result = {.bytes = answer};

static inline size_t open_descriptors(void) { return count_in("/proc/self/fd"); }

static void make_directory(const char *name, mode_t mode) { REQUIRE(mkdir(in_root(name), 0700) == 0 && chmod(in_root(name), mode) == 0); }

/* An empty root with a stage. */
static void begin_empty(void) {
    empty_root();
    make_directory(".brig-stage-1", 0700);
    records_size = 0;
}

/* Adds a record without a condition on what is there already, and with owner, group and time left as they are. */
static uint8_t *add_with_target(uint8_t action, const char *path, const char *link_target) {
    uint8_t *at = records + records_size;
    size_t length = strlen(path), target_length = strlen(link_target);
    REQUIRE(records_size + COMMIT_RECORD_BYTES + length + target_length <= sizeof records);
    memset(at, 0, COMMIT_RECORD_BYTES);
    at[0] = action;
    put32(at + 8, 0644);
    put32(at + 12, AS_IT_IS);
    put32(at + 16, AS_IT_IS);
    put32(at + 20, (uint32_t)length);
    put32(at + 24, (uint32_t)target_length);
    put64(at + 32, (uint64_t)INT64_MIN);
    memcpy(at + COMMIT_RECORD_BYTES, path, length);
    memcpy(at + COMMIT_RECORD_BYTES + length, link_target, target_length);
    records_size += COMMIT_RECORD_BYTES + length + target_length;
    return at;
}

static uint8_t *add(uint8_t action, const char *path) { return add_with_target(action, path, ""); }

/* Adds a put of a new file in the stage. */
static inline uint8_t *add_put(uint32_t number, const char *path, const char *text) {
    char name[64];
    snprintf(name, sizeof name, ".brig-stage-1/%u", number);
    put_file(name, text);
    uint8_t *at = add(COMMIT_PUT, path);
    put32(at + 4, number);
    return at;
}

static inline void expect_state(uint8_t *at, const char *name) {
    struct stat st;
    REQUIRE(lstat(in_root(name), &st) == 0);
    at[1] = EXPECT_STATE;
    put64(at + 40, (uint64_t)st.st_ino);
    put64(at + 48, (uint64_t)st.st_size);
    put64(at + 56, (uint64_t)file_time(st.st_mtim));
    put64(at + 64, (uint64_t)file_time(st.st_ctim));
}

static const uint8_t key[COMMIT_KEY_BYTES] = {7};

/* A request for the directory at `path` and its stage of this name. */
static struct file_request request_with(const char *path, const char *stage, size_t stage_length) {
    static uint8_t second[COMMIT_KEY_BYTES + 512];
    memcpy(second, key, sizeof key);
    memcpy(second + sizeof key, stage, stage_length);
    struct file_request request = {.path = (const uint8_t *)path, .path_length = (uint32_t)strlen(path), .length = records_size, .second = second};
    request.second_length = (uint32_t)(sizeof key + stage_length);
    return request;
}

static struct file_request plain_request(void) { return request_with(root, ".brig-stage-1", strlen(".brig-stage-1")); }

/* Also checks that no descriptor stays open, whether the commit succeeds or not. */
static uint32_t commit_request(const struct file_request *request) {
    static const volatile uint32_t never;
    int records_fd = memfd_create("records", MFD_CLOEXEC);
    REQUIRE(records_fd >= 0 && pwrite(records_fd, records, records_size, 0) == (ssize_t)records_size);
    struct file_job job = {.stream = records_fd, .cancelled = &never};
    size_t before = open_descriptors();
    memset(answer, 0xee, sizeof answer);
    uint32_t error = commit_run(&job, request, &result);
    REQUIRE(open_descriptors() == before && result.length >= COMMIT_RESULT_BYTES);
    close(records_fd);
    return error;
}

static uint32_t commit(void) {
    struct file_request request = plain_request();
    return commit_request(&request);
}

static inline uint32_t recover_request(const struct file_request *request) {
    size_t before = open_descriptors();
    memset(answer, 0xee, sizeof answer);
    uint32_t error = commit_recover(request, &result);
    REQUIRE(open_descriptors() == before && result.length == COMMIT_RESULT_BYTES);
    return error;
}

static inline uint32_t recover(void) {
    struct file_request request = plain_request();
    return recover_request(&request);
}

#define answered_flags() get32(answer)
#define answered_done() get32(answer + 4)
#define answered_failed() get32(answer + 8)
#define answered_conflicts() get32(answer + 12)

/* Everything was done, and nothing is left in the stage. */
static void require_committed(uint32_t count) {
    REQUIRE(answered_flags() == 0 && answered_done() == count && answered_failed() == UINT32_MAX && answered_conflicts() == 0);
    REQUIRE(result.length == COMMIT_RESULT_BYTES && access(in_root(".brig-stage-1"), F_OK) != 0);
}

/* This record was in conflict with what is there, and nothing was done. */
static inline void require_conflict(uint32_t record, uint32_t reason) {
    REQUIRE(answered_flags() == 0 && answered_done() == 0 && answered_failed() == UINT32_MAX && answered_conflicts() == 1);
    REQUIRE(result.length == COMMIT_RESULT_BYTES + COMMIT_CONFLICT_BYTES && get32(answer + 16) == record && get32(answer + 20) == reason);
    REQUIRE(access(in_root(".brig-stage-1"), F_OK) != 0);
}

/* This record could not be done, and all others were undone. */
static inline void require_failed(uint32_t record) {
    REQUIRE(answered_flags() == 0 && answered_done() == 0 && answered_failed() == record && answered_conflicts() == 0);
    REQUIRE(result.length == COMMIT_RESULT_BYTES && access(in_root(".brig-stage-1"), F_OK) != 0);
}

static inline mode_t mode_of(const char *name) {
    struct stat st;
    REQUIRE(lstat(in_root(name), &st) == 0);
    return st.st_mode & 07777;
}

/* Runs a test as an ordinary user, to whom permissions apply, and to whom the test's root belongs. */
static inline void as_user(void (*test)(void)) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        REQUIRE(chown(root, 1234, 1234) == 0 && setgid(1234) == 0 && setuid(1234) == 0);
        test();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(chown(root, 0, 0) == 0);
}

#endif
