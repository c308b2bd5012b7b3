#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes.h"
#include "commit.h"
#include "copy.h"
#include "file-list.h"
#include "file-read.h"
#include "file-remove.h"
#include "file-stat.h"
#include "file-write.h"
#include "processor-waits.h"
#include "reach.h"
#include "receipt.h"
#include "report.h"
#include "socket-owners.h"
#include "wire.h"

/* ---- mkdir, rename ----------------------------------------------------------------------------------------------- */

static uint32_t make_directory(const char *path, mode_t mode) {
    if (mkdir(path, mode) == 0) return 0;
    return (uint32_t)errno;
}

static uint32_t make_parents(const struct file_request *request, char *path) {
    /* Some kernels report EROFS or EACCES for a directory that exists. It is an error only if a directory below is then missing. */
    uint32_t denied = 0;
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        uint32_t error = make_directory(path, 0777);
        *at = '/';
        if (error == EROFS || error == EACCES) denied = error;
        else if (error && error != EEXIST && !(denied && error == ENOENT)) return error;
    }
    uint32_t error = make_directory(path, request->mode & 0777);
    if (error == ENOENT && denied) return denied;
    struct stat st;
    if (!error || file_stat(request, path, &st) != 0) return error;
    return S_ISDIR(st.st_mode) ? 0 : S_ISLNK(st.st_mode) ? ELOOP : error;
}

static uint32_t rename_path(const struct file_request *request, const char *path, char *second) {
    if (!(request->flags & PATH_WITHOUT_LINKS)) return rename(path, second) == 0 ? 0 : (uint32_t)errno;
    int from = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (from < 0) return (uint32_t)errno;
    uint32_t error = reach_directory_of(second, false);
    if (!error && renameat(from, path, AT_FDCWD, second) != 0) error = (uint32_t)errno;
    close(from);
    return error;
}

/* ---- choosing the operation -------------------------------------------------------------------------------------- */

static bool path_copy(char *to, const uint8_t *from, uint32_t length) {
    if (length >= PATH_MAX) return false;
    memcpy(to, from, length);
    to[length] = 0;
    return true;
}

static uint32_t operate(const struct file_job *job, const struct file_request *request, char *path, char *second, struct file_result *result) {
    switch (request->operation) {
    case FILE_READ: return file_read(request, path, job->stream, result);
    case FILE_WRITE: return file_write(job, request, path);
    case FILE_STAT: return file_describe(request, path, result);
    case FILE_LIST: return request->flags & LIST_INLINE ? file_list_inline(path, result) : file_list_to_stream(path, job->stream);
    case FILE_MKDIR: return request->flags & MKDIR_PARENTS ? make_parents(request, path) : make_directory(path, request->mode & 0777);
    case FILE_RENAME: return rename_path(request, path, second);
    case FILE_REMOVE: return file_remove(job, path, request->flags & (REMOVE_RECURSIVE | REMOVE_MISSING_IS_FINE));
    default: return EINVAL;
    }
}

static uint32_t run_on_path(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    char path[PATH_MAX], second[PATH_MAX];
    bool renames = request->operation == FILE_RENAME, makes = request->operation == FILE_MKDIR && request->flags & MKDIR_PARENTS;
    if (!path_copy(path, request->path, request->path_length)) return ENAMETOOLONG;
    if (renames && !path_copy(second, request->second, request->second_length)) return ENAMETOOLONG;
    if (path[0] != '/' || (renames && second[0] != '/')) return EINVAL;
    if (!(request->flags & PATH_WITHOUT_LINKS)) return operate(job, request, path, second, result);
    uint32_t error = reach_directory_of(path, makes);
    if (!error) error = operate(job, request, path, second, result);
    if (chdir("/") != 0 && !error) error = (uint32_t)errno;
    return error;
}

/* Does the writes in order up to the first that fails. The result is the number of those that succeeded. */
static uint32_t write_sequence(const struct file_job *job, const struct file_request *sequence, struct file_result *result) {
    const uint8_t *at = sequence->second, *end = at + sequence->second_length;
    struct file_request request;
    uint32_t done = 0, error = 0;
    while (!error && at < end) {
        error = sequence_next(&at, end, &request) ? run_on_path(job, &request, result) : EINVAL;
        done += !error;
    }
    put32(result->bytes, done);
    result->length = SEQUENCE_RESULT_BYTES;
    return error;
}

static uint32_t run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    if (request->operation == FILE_SEQUENCE) return write_sequence(job, request, result);
    if (request->operation == FILE_RECEIPT) return receipt_run(job, request, result);
    if (request->operation == FILE_COMMIT) return commit_run(job, request, result);
    if (request->operation == FILE_RECOVER) return commit_recover(request, result);
    if (request->operation == FILE_CHANGES) return changes_run(job, request, result);
    if (request->operation == FILE_COPY) return copy_run(job, request, result);
    if (request->operation == FILE_OWNERS) return owners_find(job, request, result);
    if (request->operation == FILE_WAITS) return waits_list(job, result);
    if (request->operation != FILE_REPORT) return run_on_path(job, request, result);
    char *paths = strndup((const char *)request->path, request->path_length);
    int failed = paths ? report_write(job->stream, paths) : -1;
    free(paths);
    return failed ? (uint32_t)errno : 0;
}

void file_operation_run(const struct file_job *job, struct worker_report *report, uint8_t *result) {
    struct file_request request;
    struct file_result found = {.bytes = result};
    report->error = file_parse(job->request, job->size, &request) ? run(job, &request, &found) : EINVAL;
    report->result_length = found.length;
}
