/* The file at a path: its type, its stat record, and whether its content may be read or replaced. */
#ifndef BRIG_FILE_STAT_H
#define BRIG_FILE_STAT_H

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "file-job.h"
#include "file-request.h"

/* A value of enum entry_type. */
uint8_t file_type(mode_t mode);

/* Nanoseconds since 1970. A time that does not fit becomes the earliest or the latest one that does. */
int64_t file_time(struct timespec time);
/* The reverse. INT64_MIN means that the time stays what it is. */
struct timespec file_timespec(int64_t ns);

/* Works like stat(2), or like lstat(2) if the request refuses symbolic links. */
int file_stat(const struct file_request *request, const char *path, struct stat *st);

/*
 * 0 for a regular file; otherwise the error with which it is neither read nor replaced. Opening a FIFO could block for ever, and
 * a device may act on being opened.
 */
uint32_t file_refuse_irregular(mode_t mode);

/* The operation `stat`. */
uint32_t file_describe(const struct file_request *request, const char *path, struct file_result *result);

#endif
