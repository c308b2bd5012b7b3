/* Reads and replaces whole files. Every function says 0, or a number of errno, or NOT_A_FILE or TOO_LARGE. */
#ifndef BRIG_PATCH_FILES_H
#define BRIG_PATCH_FILES_H

#include <sys/stat.h>

#include "text.h"

enum { NOT_A_FILE = 4096, TOO_LARGE = 4097, MAX_FILE_BYTES = 64 * 1024 * 1024 };

int read_file(const char *path, struct text *content, struct stat *st);
/* All of standard input, at most so much of it. */
int read_descriptor(int fd, size_t most, struct text *content);
/* Replaces a file at once, or makes one, through symbolic links. One that is there keeps its mode; of a new one it is `mode`. */
int replace_file(const char *path, struct text content, mode_t mode);
int make_directories(const char *path);
/* What a failure with this path is called. */
struct text failure_text(const char *path, int failure);

#endif
