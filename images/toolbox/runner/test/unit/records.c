/* Tests of what is read of bytes alone: the records of a commit, paths, and digests. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "../../../runner-files/beneath.h"
#include "../../../runner-files/commit-records.h"
#include "../../../runner-files/file-protocol.h"
#include "../../../common/sha256.h"
#include "../../../common/wire.h"
#include "require.h"

/* ---- records of a commit ---------------------------------------------------------------------------------------------- */

static uint8_t bytes[4 * PATH_MAX];
static size_t size;
static struct commit_records parsed;

static void begin(void) {
    commit_records_free(&parsed);
    parsed = (struct commit_records){0};
    size = 0;
}

static uint8_t *add(uint8_t action, const char *path, const char *target) {
    uint8_t *at = bytes + size;
    size_t length = strlen(path), target_length = strlen(target);
    memset(at, 0, COMMIT_RECORD_BYTES);
    at[0] = action;
    put32(at + 20, (uint32_t)length);
    put32(at + 24, (uint32_t)target_length);
    memcpy(at + COMMIT_RECORD_BYTES, path, length);
    memcpy(at + COMMIT_RECORD_BYTES + length, target, target_length);
    size += COMMIT_RECORD_BYTES + length + target_length;
    return at;
}

/* Parses a copy of exactly this size, so that the address sanitizer sees a read behind its end. */
static bool parse(size_t given) {
    uint8_t *copy = malloc(given + (given == 0));
    REQUIRE(copy);
    memcpy(copy, bytes, given);
    commit_records_free(&parsed);
    bool is_valid = commit_records_parse(copy, given, &parsed);
    free(copy);
    return is_valid;
}

static bool parses(void) { return parse(size); }

static void a_record_is_read_field_by_field(void) {
    begin();
    uint8_t *at = add(COMMIT_SYMLINK, "a/b", "some/where");
    at[1] = EXPECT_OLDER;
    at[2] = ENTRY_BLOCK_DEVICE;
    put32(at + 4, 0x01020304);
    put32(at + 8, 07777);
    put32(at + 12, 0x11121314);
    put32(at + 16, 0x21222324);
    for (uint8_t i = 0; i < 5; i++) put64(at + 32 + 8 * i, UINT64_C(0x8000000000000000) + i);
    add(COMMIT_CHECK, "b", "");
    REQUIRE(parses() && parsed.count == 2);
    const struct commit_record *one = &parsed.all[0];
    REQUIRE(one->action == COMMIT_SYMLINK && one->expects == EXPECT_OLDER && one->expected_type == ENTRY_BLOCK_DEVICE && one->content == 0x01020304);
    REQUIRE(one->mode == 07777 && one->uid == 0x11121314 && one->gid == 0x21222324 && one->mtime == INT64_MIN);
    REQUIRE(one->ino == UINT64_C(0x8000000000000001) && one->size == UINT64_C(0x8000000000000002));
    REQUIRE(one->expected_mtime == INT64_MIN + 3 && one->expected_ctime == INT64_MIN + 4);
    REQUIRE(strcmp(one->path, "a/b") == 0 && strcmp(one->target, "some/where") == 0);
    REQUIRE(strcmp(parsed.all[1].path, "b") == 0 && parsed.all[1].target[0] == 0 && parsed.all[1].action == COMMIT_CHECK);
    size_t first = size - COMMIT_RECORD_BYTES - 1;
    for (size_t given = 0; given < size; given++) REQUIRE(parse(given) == (given == 0 || given == first));
    bytes[size] = 0;
    REQUIRE(!parse(size + 1));
}

static bool parses_with(size_t at, uint8_t value, uint8_t action) {
    begin();
    add(action, "path", action == COMMIT_SYMLINK ? "target" : "")[at] = value;
    return parses();
}

static void each_number_has_its_bounds(void) {
    for (int value = 0; value < 256; value++) {
        uint8_t v = (uint8_t)value;
        REQUIRE(parses_with(0, v, COMMIT_PUT) == (v == COMMIT_PUT || v == COMMIT_MKDIR || v == COMMIT_REMOVE || v == COMMIT_CHECK));
        REQUIRE(parses_with(0, v, COMMIT_SYMLINK) == (v == COMMIT_SYMLINK));
        REQUIRE(parses_with(1, v, COMMIT_PUT) == (v <= EXPECT_OLDER) && parses_with(2, v, COMMIT_PUT) == (v <= ENTRY_BLOCK_DEVICE));
        REQUIRE(parses_with(9, v, COMMIT_PUT) == (v < 16));
    }
    static const size_t zero[] = {3, 10, 11, 28, 29, 30, 31};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) REQUIRE(!parses_with(zero[i], 1, COMMIT_PUT));
}

static void a_path_is_below_the_target_and_a_target_may_be_anything_but_nothing(void) {
    static const char *const wrong[] = {"", ".", "..", "/a", "a/", "a//b", "a/./b", "a/../b", "../a", "a/.."};
    static const char *const right[] = {"...", ".a", "..a", "a/.../b", "a b", "a/b/c"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        begin();
        add(COMMIT_PUT, wrong[i], "");
        REQUIRE(!parses() && !is_path_below(wrong[i], strlen(wrong[i])));
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        begin();
        add(COMMIT_PUT, right[i], "");
        REQUIRE(parses() && is_path_below(right[i], strlen(right[i])));
    }
    begin();
    add(COMMIT_PUT, "axb", "")[COMMIT_RECORD_BYTES + 1] = 0;
    REQUIRE(!parses());
    begin();
    add(COMMIT_SYMLINK, "a", "xyz")[COMMIT_RECORD_BYTES + 3] = 0;
    REQUIRE(!parses());
    begin();
    add(COMMIT_SYMLINK, "a", "../../x")[8] = 0;
    REQUIRE(parses() && strcmp(parsed.all[0].target, "../../x") == 0);
}

/* A path of `length` bytes, made of names of `name` bytes. */
static const char *path_of(size_t length, size_t name) {
    static char path[PATH_MAX + 2];
    for (size_t i = 0; i < length; i++) path[i] = i % (name + 1) == name ? '/' : 'n';
    path[length] = 0;
    return path;
}

static void paths_and_names_are_as_long_as_they_may_be(void) {
    for (size_t name = NAME_MAX; name <= NAME_MAX + 1; name++) {
        begin();
        add(COMMIT_PUT, path_of(name, name + 1), "");
        REQUIRE(parses() == (name == NAME_MAX));
    }
    for (size_t length = PATH_MAX - 1; length <= PATH_MAX; length++) {
        begin();
        add(COMMIT_PUT, path_of(length, 100), "");
        REQUIRE(parses() == (length == PATH_MAX - 1) && is_path_below(path_of(length, 100), length) == (length == PATH_MAX - 1));
        begin();
        add(COMMIT_SYMLINK, "l", path_of(length, 100));
        REQUIRE(parses() == (length == PATH_MAX - 1));
    }
    /* The lengths of path and target together exceed the bytes that there are. */
    begin();
    put32(add(COMMIT_SYMLINK, "l", "t") + 24, 2);
    REQUIRE(!parses());
}

static void paths_are_in_order_and_each_is_there_once(void) {
    static const struct {
        const char *first, *second;
        bool is_valid;
    } all[] = {{"a", "b", true}, {"a", "a", false}, {"b", "a", false}, {"a", "a/b", true}, {"a/b", "a", false}, {"a-b", "a/b", true}, {"a/b", "a-b", false}, {"a", "\377", true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        begin();
        add(COMMIT_PUT, all[i].first, "");
        add(COMMIT_PUT, all[i].second, "");
        REQUIRE(parses() == all[i].is_valid);
    }
}

static bool makes_parent(const char *path) {
    struct commit_record record = {.path = (char *)(uintptr_t)path};
    return commit_records_make_parent(&parsed, &record);
}

static void a_directory_that_is_made_is_found_on_the_way(void) {
    begin();
    add(COMMIT_MKDIR, "a", "");
    add(COMMIT_PUT, "b", "");
    add(COMMIT_MKDIR, "c/d", "");
    add(COMMIT_REMOVE, "e", "");
    REQUIRE(parses());
    REQUIRE(makes_parent("a/x") && makes_parent("a/x/y/z") && makes_parent("c/d/x") && makes_parent("c/d/e/f"));
    REQUIRE(!makes_parent("a") && !makes_parent("aa/x") && !makes_parent("b/x") && !makes_parent("c/x") && !makes_parent("c/d") && !makes_parent("e/x") && !makes_parent("x"));
}

static void names_of_stages_begin_in_one_way(void) {
    REQUIRE(is_stage_name(".brig-stage-") && is_stage_name(".brig-stage-1/x"));
    REQUIRE(!is_stage_name(".brig-stage") && !is_stage_name("x/.brig-stage-1") && !is_stage_name("") && !is_stage_name(".brig-stagf-"));
    begin();
}

/* ---- digests ------------------------------------------------------------------------------------------------------------ */

/* Digests the first 0, 1, 2, … 300 bytes of a text, and compares the digest of all these digests with the known one. */
static void digests_of_every_length_are_those_of_the_standard(void) {
    static const uint8_t expected[32] = {0x7d, 0x91, 0x7f, 0xbd, 0x2c, 0xf4, 0x9d, 0xdf, 0xf9, 0xad, 0x0a, 0x87, 0x06, 0xbb, 0xa3, 0x2d, 0x20, 0x4e, 0x92, 0xe7, 0x1d, 0x2e, 0x36, 0x9c, 0x5a, 0x03, 0xd6, 0xaf, 0x29, 0x27, 0x8c, 0x9f};
    static const struct sha256 nothing;
    struct sha256 all, one;
    uint8_t text[300], digest[32], again[32];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)(i * 7 + 3);
    sha256_begin(&all);
    for (size_t length = 0; length <= sizeof text; length++) {
        sha256_begin(&one);
        sha256_add(&one, text, length);
        sha256_end(&one, digest);
        REQUIRE(memcmp(&one, &nothing, sizeof one) == 0);
        sha256_add(&all, digest, sizeof digest);
        /* The digest of pieces is that of the whole. */
        sha256_begin(&one);
        for (size_t at = 0, piece = 1; at < length; at += piece, piece = piece * 3 % 101 + 1) sha256_add(&one, text + at, length - at < piece ? length - at : piece);
        sha256_end(&one, again);
        REQUIRE(memcmp(digest, again, sizeof digest) == 0);
    }
    sha256_end(&all, digest);
    REQUIRE(memcmp(digest, expected, sizeof digest) == 0);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(a_record_is_read_field_by_field);
    RUN(each_number_has_its_bounds);
    RUN(a_path_is_below_the_target_and_a_target_may_be_anything_but_nothing);
    RUN(paths_and_names_are_as_long_as_they_may_be);
    RUN(paths_are_in_order_and_each_is_there_once);
    RUN(a_directory_that_is_made_is_found_on_the_way);
    RUN(names_of_stages_begin_in_one_way);
    RUN(digests_of_every_length_are_those_of_the_standard);
    return 0;
}
