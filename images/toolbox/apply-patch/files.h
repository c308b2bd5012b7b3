/* Reads and replaces whole files. Every function returns 0, or an errno, or NOT_A_FILE or TOO_LARGE. */
#ifndef BRIG_PATCH_FILES_H
#define BRIG_PATCH_FILES_H

#include <sys/stat.h>

#include "text.h"

enum { NOT_A_FILE = 4096, TOO_LARGE = 4097, MAX_FILE_BYTES = 64 * 1024 * 1024 };

int read_file(const char *path, struct text *content, struct stat *st);
/* Reads everything from a descriptor, at most `most` bytes. */
int read_descriptor(int fd, size_t most, struct text *content);
/* Replaces a file at once, or makes one, through symbolic links. An existing file keeps its mode; a new one gets `mode`. */
int replace_file(const char *path, struct text content, mode_t mode);
int make_directories(const char *path);
/* The message for a failure with this path. */
struct text failure_text(const char *path, int failure);

#endif
