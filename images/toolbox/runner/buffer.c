#include "buffer.h"

#include <stdlib.h>
#include <string.h>

size_t buffer_length(const struct buffer *b) { return b->end - b->start; }

uint8_t *buffer_front(const struct buffer *b) { return b->data + b->start; }

static int make_room(struct buffer *b, size_t size) {
    size_t length = buffer_length(b);
    if (b->start > 0 && length + size <= b->capacity && (length <= b->capacity / 2 || b->end + size > b->capacity)) {
        memmove(b->data, b->data + b->start, length);
        b->start = 0;
        b->end = length;
    }
    if (b->capacity - b->end >= size) return 0;
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity < length + size) capacity *= 2;
    uint8_t *data = malloc(capacity);
    if (!data) return -1;
    if (length) memcpy(data, b->data + b->start, length);
    free(b->data);
    *b = (struct buffer){data, 0, length, capacity};
    return 0;
}

uint8_t *buffer_reserve(struct buffer *b, size_t size) {
    if (b->capacity - b->end < size && make_room(b, size) != 0) return NULL;
    return b->data + b->end;
}

void buffer_commit(struct buffer *b, size_t size) { b->end += size; }

int buffer_append(struct buffer *b, const void *data, size_t size) {
    uint8_t *room = buffer_reserve(b, size);
    if (!room) return -1;
    if (size) memcpy(room, data, size);
    b->end += size;
    return 0;
}

void buffer_drop(struct buffer *b, size_t size) {
    b->start += size;
    if (b->start == b->end) b->start = b->end = 0;
}

void buffer_free(struct buffer *b) {
    free(b->data);
    *b = (struct buffer){0};
}
