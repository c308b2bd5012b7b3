/* Reads a fuzz input as a sequence of choices. At its end every choice is 0. */
#ifndef BRIG_FUZZ_INPUT_H
#define BRIG_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at, *end;
};

static inline int input_is_empty(const struct input *in) { return in->at == in->end; }

static inline uint8_t input_byte(struct input *in) { return in->at < in->end ? *in->at++ : 0; }

static inline uint32_t input_word(struct input *in) {
    uint32_t low = input_byte(in);
    return low | (uint32_t)input_byte(in) << 8;
}

/* 0 … limit - 1 */
static inline uint32_t input_below(struct input *in, uint32_t limit) {
    return limit <= 256 ? input_byte(in) % limit : input_word(in) % limit;
}

/* A condition that must hold for every input. If it does not, the fuzzer keeps the input and reports a crash. */
#define REQUIRE(condition)                                                                    \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

#endif
