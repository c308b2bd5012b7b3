/* A queue of bytes: they are appended at the end and dropped from the front. */
#ifndef BRIG_BUFFER_H
#define BRIG_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *data;
    size_t start, end, capacity;
};

size_t buffer_length(const struct buffer *b);
uint8_t *buffer_front(const struct buffer *b);
/* Room for `size` more bytes at the end, or NULL when memory is out. They belong to the queue only after buffer_commit. */
uint8_t *buffer_reserve(struct buffer *b, size_t size);
void buffer_commit(struct buffer *b, size_t size);
int buffer_append(struct buffer *b, const void *data, size_t size);
void buffer_drop(struct buffer *b, size_t size);
void buffer_free(struct buffer *b);
/* Whether a large buffer is mostly empty. */
bool buffer_is_loose(const struct buffer *b);
/* Frees memory that is not needed. Pointers into the buffer are not valid any more. */
void buffer_tighten(struct buffer *b);

#endif
