/* Writing to a descriptor that blocks, and reading short files of the kernel. */
#ifndef BRIG_IO_H
#define BRIG_IO_H

#include <stdbool.h>
#include <stddef.h>

/* Returns 0 once every byte is written, or -1 with errno. */
int write_all(int fd, const void *data, size_t size);

/* Reads the beginning of a file of the kernel, and ends it with NUL. False, and no text, if nothing can be read. */
bool read_text(int fd, char *text, size_t size);

#endif
