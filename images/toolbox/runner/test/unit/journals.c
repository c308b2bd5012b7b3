/* Tests of the journal of a commit, byte by byte. Its source is included, so that tests can write one that the commit itself would not write. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../runner-files/commit-journal.c"

#include "root.h"

static const uint8_t key[COMMIT_KEY_BYTES] = {1, 2, 3};

static int open_stage(void) {
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    return fd;
}

static void what_is_written_is_read_again(void) {
    const struct step steps[] = {
        {.kind = STEP_EXCHANGE, .makes_directory = true, .index = 0x01020304, .old_mode = 0750, .new_ino = UINT64_MAX - 1, .old_ino = UINT64_MAX - 2, .staged = "r12345678901234", .path = "d/file"},
        {.kind = STEP_TAKE, .cannot_move = true, .index = 7, .old_mode = NO_MODE, .staged = "1", .path = "e"},
        {.kind = STEP_INSTALL, .index = 9, .staged = "2", .path = "f"},
    };
    struct journal journal;
    int stage = open_stage();
    REQUIRE(journal_write(stage, key, steps, 3, JOURNAL_OF_STEPS) == 0 && journal_write(stage, key, steps, 3, JOURNAL_OF_REMOVALS) == 0);
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == 0 && journal.count == 3);
    for (size_t i = 0; i < 3; i++) {
        const struct step *step = &journal.steps[i], *written = &steps[i];
        REQUIRE(step->kind == written->kind && step->makes_directory == written->makes_directory && !step->cannot_move);
        REQUIRE(step->index == written->index && step->old_mode == written->old_mode && step->new_ino == written->new_ino && step->old_ino == written->old_ino);
        REQUIRE(strcmp(step->staged, written->staged) == 0 && strcmp(step->path, written->path) == 0);
    }
    journal_free(&journal);
    /* Only what cannot be moved is in the other one. */
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_REMOVALS) == 0 && journal.count == 1);
    REQUIRE(journal.steps[0].cannot_move && strcmp(journal.steps[0].path, "e") == 0);
    journal_free(&journal);
    REQUIRE(journal_close(stage) == 0 && journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == ENOENT);
    journal_free(&journal);
    REQUIRE(journal_close(stage) == ENOENT && access(in_root("journal.new"), F_OK) != 0);
    close(stage);
}

static void an_empty_list_is_a_journal_too(void) {
    struct journal journal;
    int stage = open_stage();
    REQUIRE(journal_write(stage, key, NULL, 0, JOURNAL_OF_STEPS) == 0);
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == 0 && journal.count == 0);
    journal_free(&journal);
    close(stage);
}

/* Whether a journal that has these bytes behind its authentication code is read, and how many steps it has. */
static uint32_t read_bytes(const uint8_t *bytes, size_t size, size_t *count) {
    static uint8_t file[1024];
    struct journal journal;
    int stage = open_stage();
    memcpy(file + CODE_BYTES, bytes, size);
    authenticate(key, bytes, size, file);
    REQUIRE(write_file(stage, "journal", file, CODE_BYTES + size) == 0);
    uint32_t error = journal_read(stage, key, &journal, JOURNAL_OF_STEPS);
    *count = journal.count;
    journal_free(&journal);
    close(stage);
    return error;
}

static const struct step plain = {.kind = STEP_TAKE, .staged = "1", .path = "d/x"};
#define PLAIN_BYTES (STEP_BYTES + sizeof "d/x")

static void put_plain(uint8_t *bytes) { encode(bytes, &plain, strlen(plain.path), JOURNAL_OF_STEPS); }

/* The key makes it genuine, but a path in it must not lead out of the target all the same. */
static void a_step_that_is_wrong_makes_the_journal_unreadable(void) {
    uint8_t bytes[2 * PLAIN_BYTES + 8] = {0};
    size_t count;
    put_plain(bytes);
    put_plain(bytes + PLAIN_BYTES);
    REQUIRE(read_bytes(bytes, 2 * PLAIN_BYTES, &count) == 0 && count == 2);
    for (size_t size = 1; size < 2 * PLAIN_BYTES; size++)
        REQUIRE(read_bytes(bytes, size, &count) == (size == PLAIN_BYTES ? 0 : EBADMSG));
    REQUIRE(read_bytes(bytes, 2 * PLAIN_BYTES + 1, &count) == EBADMSG);
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {2, JOURNAL_OF_REMOVALS}, {12, 2}, {12, 4}, {12, 200}, {15, 1}, {47, 'x'}, {STEP_BYTES, '/'}, {STEP_BYTES, 0}, {STEP_BYTES + 3, 'y'},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_plain(bytes);
        bytes[wrong[i].at] = wrong[i].value;
        REQUIRE(read_bytes(bytes, PLAIN_BYTES, &count) == EBADMSG);
    }
    put_plain(bytes);
    memcpy(bytes + STEP_BYTES, "../", 3);
    REQUIRE(read_bytes(bytes, PLAIN_BYTES, &count) == EBADMSG);
}

/* The byte behind a step decides nothing: it may be part of the next step. */
static void a_step_is_read_within_its_size(void) {
    uint8_t bytes[PLAIN_BYTES + 1] = {0};
    struct step step;
    put_plain(bytes);
    REQUIRE(decode(bytes, PLAIN_BYTES, &step, JOURNAL_OF_STEPS) == PLAIN_BYTES && strcmp(step.path, "d/x") == 0);
    REQUIRE(decode(bytes, PLAIN_BYTES - 1, &step, JOURNAL_OF_STEPS) == 0);
    REQUIRE(decode(bytes, STEP_BYTES, &step, JOURNAL_OF_STEPS) == 0 && decode(bytes, 0, &step, JOURNAL_OF_STEPS) == 0);
}

static void a_journal_of_somebody_else_is_not_read(void) {
    static const uint8_t other_key[COMMIT_KEY_BYTES] = {1, 2, 3, [COMMIT_KEY_BYTES - 1] = 1};
    struct journal journal;
    int stage = open_stage();
    REQUIRE(journal_write(stage, key, &plain, 1, JOURNAL_OF_STEPS) == 0);
    REQUIRE(journal_read(stage, other_key, &journal, JOURNAL_OF_STEPS) == EBADMSG && journal.count == 0);
    journal_free(&journal);
    /* Each of its bytes matters. */
    for (off_t at = 0; at < (off_t)(CODE_BYTES + PLAIN_BYTES); at++) {
        int fd = open(in_root("journal"), O_RDWR | O_CLOEXEC);
        uint8_t byte;
        REQUIRE(fd >= 0 && pread(fd, &byte, 1, at) == 1);
        byte ^= 0x10;
        REQUIRE(pwrite(fd, &byte, 1, at) == 1 && journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == EBADMSG);
        journal_free(&journal);
        byte ^= 0x10;
        REQUIRE(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
    }
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == 0);
    journal_free(&journal);
    close(stage);
}

/* RFC 4231, test case 1, whose key is shorter than that of a commit and so is filled with zeros. */
static void the_code_is_that_of_the_standard(void) {
    static const uint8_t expected[] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b,
                                       0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7};
    uint8_t short_key[COMMIT_KEY_BYTES] = {0}, code[CODE_BYTES];
    memset(short_key, 0x0b, 20);
    authenticate(short_key, (const uint8_t *)"Hi There", 8, code);
    REQUIRE(memcmp(code, expected, sizeof code) == 0);
}

static void what_is_no_file_of_that_size_is_no_journal(void) {
    struct journal journal;
    int stage = open_stage();
    REQUIRE(unlink(in_root("journal")) == 0 && mkdir(in_root("journal"), 0700) == 0);
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == EBADMSG);
    journal_free(&journal);
    REQUIRE(rmdir(in_root("journal")) == 0 && mkfifo(in_root("journal"), 0600) == 0);
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == EBADMSG);
    journal_free(&journal);
    REQUIRE(unlink(in_root("journal")) == 0 && symlink("elsewhere", in_root("journal")) == 0);
    put_file("elsewhere", "");
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == ELOOP);
    journal_free(&journal);
    REQUIRE(unlink(in_root("journal")) == 0);
    put_file("journal", "31 bytes are less than the code");
    REQUIRE(journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == EBADMSG);
    journal_free(&journal);
    REQUIRE(truncate(in_root("journal"), (off_t)JOURNAL_MAX + 1) == 0 && journal_read(stage, key, &journal, JOURNAL_OF_STEPS) == EBADMSG);
    journal_free(&journal);
    REQUIRE(unlink(in_root("journal")) == 0);
    close(stage);
}

/* A file of that name could be anybody's. */
static void a_journal_is_written_to_a_new_file(void) {
    int stage = open_stage();
    put_file("journal.new", "theirs");
    REQUIRE(journal_write(stage, key, &plain, 1, JOURNAL_OF_STEPS) == EEXIST && access(in_root("journal"), F_OK) != 0);
    require_file("journal.new", "theirs");
    struct stat st;
    REQUIRE(unlink(in_root("journal.new")) == 0 && journal_write(stage, key, &plain, 1, JOURNAL_OF_STEPS) == 0);
    REQUIRE(stat(in_root("journal"), &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == (off_t)(CODE_BYTES + PLAIN_BYTES));
    close(stage);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-journals-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(what_is_written_is_read_again);
    RUN(an_empty_list_is_a_journal_too);
    RUN(a_step_that_is_wrong_makes_the_journal_unreadable);
    RUN(a_step_is_read_within_its_size);
    RUN(a_journal_of_somebody_else_is_not_read);
    RUN(the_code_is_that_of_the_standard);
    RUN(what_is_no_file_of_that_size_is_no_journal);
    RUN(a_journal_is_written_to_a_new_file);
    return 0;
}
