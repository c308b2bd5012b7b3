/* Tests of what a commit finds at its paths, and of directories that shut out even their owner. */
#define _GNU_SOURCE
#include "failing.h"

#include "../../../runner-files/commit-place.h"
#include "commits.h"
#include "picture.h"

static char before[PICTURE_MAX];

/* ---- a rename at which something happens ---------------------------------------------------------------------------- */

static bool has_no_flags;
static const char *awaited_name;
static void (*at_that_rename)(void);
static int refused_with;

static int rename_here(int from, const char *name, int to, const char *new_name, unsigned flags) {
    (void)from, (void)to;
    if (awaited_name && (strcmp(name, awaited_name) == 0 || strcmp(new_name, awaited_name) == 0)) {
        awaited_name = NULL;
        if (at_that_rename) at_that_rename();
        if (refused_with) return refused_with;
    }
    return has_no_flags && flags != 0 ? EINVAL : 0;
}

static void begin(void) {
    begin_empty();
    refuse_rename = rename_here;
    has_no_flags = false;
    awaited_name = NULL;
    at_that_rename = NULL;
    refused_with = 0;
}

/* Adds a last record, which is refused, so that all others are undone. */
static void be_undone(void) {
    put_file("z", "z");
    add(COMMIT_REMOVE, "z");
    awaited_name = "z";
    refused_with = EBUSY;
    take_picture(before, true);
}

static void require_undone(uint32_t record) {
    REQUIRE(commit() == 0 && is_now(before, true));
    require_conflict(record, CONFLICT_MOUNT);
}

/* ---- permissions ---------------------------------------------------------------------------------------------------- */

static void put_time(const char *name, time_t seconds) {
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, in_root(name), times, AT_SYMLINK_NOFOLLOW) == 0);
}

static time_t time_of(const char *name) {
    struct stat st;
    REQUIRE(lstat(in_root(name), &st) == 0);
    return st.st_mtim.tv_sec;
}

static void add_directory(const char *path, mode_t mode) {
    uint8_t *at = add(COMMIT_MKDIR, path);
    put32(at + 8, mode);
    put64(at + 32, UINT64_C(7000000000));
}

static void make_closed_directories(void) {
    make_directory("d", 0700);
    put_file("d/x", "old x");
    REQUIRE(chmod(in_root("d"), 0500) == 0);
    make_directory("r", 0500);
    make_directory("s", 0500);
    add_directory("d", 0);
    add_put(0, "d/x", "new x");
    add_directory("n", 0);
    add_directory("n/m", 0100);
    add_put(1, "n/m/g", "new g");
    add(COMMIT_REMOVE, "r");
    add_put(2, "s", "new s");
    make_directory("t", 0700);
    put_time("t", 3);
    add_directory("t", 0711);
}

/* While a commit works in this directory, whose mode is 0500, its owner may write to it. Others may do no more there than before. */
static void look_at_the_open_directory(void) { REQUIRE(mode_of("d") == 0700); }

static void close_and_look(void) {
    begin();
    make_closed_directories();
    awaited_name = "x";
    at_that_rename = look_at_the_open_directory;
    REQUIRE(commit() == 0 && !awaited_name);
    require_committed(8);
    REQUIRE(mode_of("d") == 0 && mode_of("n") == 0 && time_of("n") == 7 && mode_of("t") == 0711 && time_of("t") == 3);
    REQUIRE(chmod(in_root("d"), 0700) == 0 && chmod(in_root("n"), 0700) == 0 && mode_of("n/m") == 0100 && time_of("n/m") == 7);
    require_file("d/x", "new x");
    require_file("n/m/g", "new g");
    require_file("s", "new s");
    REQUIRE(access(in_root("r"), F_OK) != 0);
}

static void directories_that_shut_out_their_owner_are_made_with_what_is_in_them(void) {
    empty_root();
    as_user(close_and_look);
}

static void close_in_vain(void) {
    for (int simple = 0; simple < 2; simple++) {
        begin();
        make_closed_directories();
        has_no_flags = simple;
        be_undone();
        require_undone(8);
        REQUIRE(chmod(in_root("d"), 0700) == 0 && chmod(in_root("r"), 0700) == 0 && chmod(in_root("s"), 0700) == 0);
    }
}

static void directories_that_are_shut_get_their_modes_back(void) {
    empty_root();
    as_user(close_in_vain);
}

static void require_found(uint8_t action, const char *path, uint8_t expects, uint32_t reason) {
    records_size = 0;
    add(action, path)[1] = expects;
    if (access(in_root(".brig-stage-1"), F_OK) != 0) make_directory(".brig-stage-1", 0700);
    REQUIRE(commit() == 0);
    if (reason) require_conflict(0, reason);
    else require_committed(0);
}

static void look_at_what_is_closed(void) {
    make_directory("p", 0700);
    make_directory("p/q", 0700);
    make_directory("o", 0700);
    make_directory("o/inner", 0);
    REQUIRE(chmod(in_root("p"), 0) == 0);
    require_found(COMMIT_CHECK, "p/x", EXPECT_ANY, CONFLICT_PARENT);
    require_found(COMMIT_CHECK, "p/q/x", EXPECT_ABSENT, CONFLICT_PARENT);
    records_size = 0;
    make_directory(".brig-stage-1", 0700);
    uint8_t *at = add(COMMIT_REMOVE, "o");
    at[1] = EXPECT_OLDER;
    put64(at + 64, INT64_MAX);
    REQUIRE(commit() == 0);
    require_conflict(0, CONFLICT_CHANGED);
    REQUIRE(chmod(in_root("p"), 0700) == 0);
}

static void what_must_not_be_looked_at_is_a_conflict(void) {
    empty_root();
    as_user(look_at_what_is_closed);
}

/* ---- mounts ----------------------------------------------------------------------------------------------------------- */

static void what_is_mounted_there_is_a_conflict(void) {
    for (int is_bound = 0; is_bound < 2; is_bound++) {
        begin();
        make_directory("d", 0700);
        make_directory("other", 0700);
        REQUIRE(mount(is_bound ? in_root("other") : "tmpfs", in_root("d"), is_bound ? NULL : "tmpfs", is_bound ? MS_BIND : 0, NULL) == 0);
        make_directory("d/e", 0700);
        require_found(COMMIT_REMOVE, "d", EXPECT_ANY, CONFLICT_MOUNT);
        require_found(COMMIT_REMOVE, "d/e", EXPECT_ANY, CONFLICT_MOUNT);
        require_found(COMMIT_CHECK, "d/e/f", EXPECT_ABSENT, CONFLICT_MOUNT);
        REQUIRE(umount(in_root("d")) == 0);
    }
}

/* ---- what is expected --------------------------------------------------------------------------------------------------- */

static int64_t changed_at(const char *name) {
    struct stat st;
    REQUIRE(lstat(in_root(name), &st) == 0);
    return file_time(st.st_ctim);
}

/* Commits one record that expects `path` to be no newer than `limit`. Returns the conflict, or 0 if the expectation was met. */
static uint32_t found_older(uint8_t action, const char *path, int64_t limit) {
    records_size = 0;
    uint8_t *at = add(action, path);
    at[1] = EXPECT_OLDER;
    put64(at + 64, (uint64_t)limit);
    if (access(in_root(".brig-stage-1"), F_OK) != 0) make_directory(".brig-stage-1", 0700);
    awaited_name = path;
    refused_with = ENOSPC; /* or it would be gone */
    uint32_t error = commit();
    REQUIRE(error == (action == COMMIT_REMOVE && answered_conflicts() == 0 ? ENOSPC : 0));
    return answered_conflicts() > 0 ? get32(answer + 20) : 0;
}

static void a_directory_is_as_old_as_the_newest_thing_in_it(void) {
    begin();
    make_directory("d", 0700);
    make_directory("d/e", 0700);
    put_file("d/a", "a");
    put_file("d/e/b", "b");
    REQUIRE(symlink("/nowhere", in_root("d/l")) == 0);
    static const char *const names[] = {"d", "d/a", "d/e", "d/e/b", "d/l"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t newest = 0;
        /* Changes this file until its time of change is later than those of all others. */
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (changed_at(names[k]) > newest) newest = changed_at(names[k]);
        do put_time(names[i], 5);
        while (changed_at(names[i]) <= newest);
        newest = changed_at(names[i]);
        REQUIRE(found_older(COMMIT_REMOVE, "d", newest) == 0 && found_older(COMMIT_REMOVE, "d", newest - 1) == CONFLICT_CHANGED);
        /* A directory that stays keeps what is in it. */
        REQUIRE(found_older(COMMIT_CHECK, "d", newest - 1) == 0 && found_older(COMMIT_MKDIR, "d", 0) == 0);
    }
    int64_t newest = changed_at("d/a");
    REQUIRE(found_older(COMMIT_CHECK, "d/a", newest) == 0 && found_older(COMMIT_CHECK, "d/a", newest - 1) == CONFLICT_CHANGED);
}

/* A file that is removed during the check counts as not newer. One that cannot be looked at counts as newer. */
static void what_has_gone_meanwhile_is_not_new(void) {
    for (int has_gone = 0; has_gone < 2; has_gone++) {
        begin();
        make_directory("d", 0700);
        put_file("d/inner", "x");
        fail_for("inner", has_gone ? ENOENT : EIO);
        REQUIRE(found_older(COMMIT_REMOVE, "d", INT64_MAX) == (has_gone ? 0 : CONFLICT_CHANGED) && has_failed());
    }
}

static void make_chain(int depth) {
    begin();
    REQUIRE(chdir(root) == 0);
    for (int i = 0; i < depth; i++) REQUIRE(mkdir("c", 0700) == 0 && chdir("c") == 0);
    REQUIRE(chdir("/") == 0);
}

static void a_directory_is_searched_as_deep_as_it_may_be(void) {
    make_chain(200);
    REQUIRE(found_older(COMMIT_REMOVE, "c", INT64_MAX) == 0);
    make_chain(201);
    REQUIRE(found_older(COMMIT_REMOVE, "c", INT64_MAX) == CONFLICT_CHANGED);
}

static void a_parent_is_there_or_is_made(void) {
    static const struct {
        uint8_t first_action, action;
        const char *first, *path;
        uint32_t reason;
    } all[] = {
        {COMMIT_MKDIR, COMMIT_PUT, "n", "n/x", 0},          {COMMIT_MKDIR, COMMIT_MKDIR, "n", "n/x", 0},        {COMMIT_MKDIR, COMMIT_SYMLINK, "n", "n/x", 0},
        {COMMIT_MKDIR, COMMIT_REMOVE, "n", "n/x", 0},       {COMMIT_REMOVE, COMMIT_REMOVE, "n", "n/x", 0},      {COMMIT_CHECK, COMMIT_CHECK, "n", "n/x", 0},
        {COMMIT_PUT, COMMIT_PUT, "n", "n/x", CONFLICT_PARENT}, {COMMIT_MKDIR, COMMIT_PUT, "n", "nn/x", CONFLICT_PARENT},
        {COMMIT_CHECK, COMMIT_MKDIR, "n", "n/x", CONFLICT_PARENT}, {COMMIT_CHECK, COMMIT_SYMLINK, "n", "n/x", CONFLICT_PARENT},
        {COMMIT_MKDIR, COMMIT_PUT, "f", "f/x", 0},          {COMMIT_REMOVE, COMMIT_PUT, "f", "f/x", CONFLICT_PARENT},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        begin();
        put_file("f", "f");
        put_file(".brig-stage-1/0", "0");
        put_file(".brig-stage-1/1", "1");
        add(all[i].first_action, all[i].first);
        uint8_t *at = add_with_target(all[i].action, all[i].path, all[i].action == COMMIT_SYMLINK ? "target" : "");
        put32(at + 4, 1);
        REQUIRE(commit() == 0 && answered_failed() == UINT32_MAX);
        if (all[i].reason) require_conflict(1, all[i].reason);
        else REQUIRE(answered_conflicts() == 0 && (access(in_root(all[i].path), F_OK) == 0) == (all[i].action == COMMIT_PUT || all[i].action == COMMIT_MKDIR));
    }
}

/* ---- what another process has put there ----------------------------------------------------------------------------------- */

static const char *other_text;
static time_t other_time;

static void replace_a(void) {
    REQUIRE(rename(in_root("a"), in_root("theirs")) == 0);
    put_file("a", other_text);
    put_time("a", other_time);
}

/* An overlay gives a file with a second name another number when it is renamed: that is still the file that was expected. */
static void a_file_with_a_second_name_is_known_by_its_size_and_time(void) {
    static const struct {
        bool has_second_name;
        const char *text;
        time_t time;
        uint8_t expects;
        bool is_known;
    } all[] = {
        {false, "old a", 3, EXPECT_STATE, false}, {true, "old a", 3, EXPECT_STATE, true}, {true, "longer a", 3, EXPECT_STATE, false},
        {true, "old a", 4, EXPECT_STATE, false},  {false, "other", 9, EXPECT_ANY, true},
    };
    for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        const char *name = i % 2 ? "the new file replaces it" : "it is removed";
        begin();
        put_file("a", "old a");
        if (all[i / 2].has_second_name) REQUIRE(link(in_root("a"), in_root("second")) == 0);
        put_time("a", 3);
        uint8_t *at = i % 2 ? add_put(0, "a", name) : add(COMMIT_REMOVE, "a");
        expect_state(at, "a");
        at[1] = all[i / 2].expects;
        other_text = all[i / 2].text;
        other_time = all[i / 2].time;
        awaited_name = "a";
        at_that_rename = replace_a;
        REQUIRE(commit() == 0);
        if (all[i / 2].is_known) {
            require_committed(1);
            if (i % 2) require_file("a", name);
            else REQUIRE(access(in_root("a"), F_OK) != 0);
        } else {
            require_conflict(0, CONFLICT_CHANGED);
            require_file("a", other_text);
        }
    }
}

/* Setting the owner or the mode that a file has already would still be written to the disk. */
static void a_file_that_is_as_wanted_is_not_changed_again(void) {
    static const char *const calls[] = {"fchown", "fchmod"};
    for (int i = 0; i < 6; i++) {
        begin();
        uint8_t *at = add_put(0, "a", "new a");
        REQUIRE(chmod(in_root(".brig-stage-1/0"), 0644) == 0);
        if (i >= 2) put32(at + 12, 0);
        if (i >= 4) put32(at + 16, 0);
        fail_in(calls[i % 2], 0, EPERM);
        REQUIRE(commit() == 0 && !has_failed());
        require_committed(1);
        require_file("a", "new a");
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-places-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(directories_that_shut_out_their_owner_are_made_with_what_is_in_them);
    RUN(directories_that_are_shut_get_their_modes_back);
    RUN(what_must_not_be_looked_at_is_a_conflict);
    RUN(what_is_mounted_there_is_a_conflict);
    RUN(a_directory_is_as_old_as_the_newest_thing_in_it);
    RUN(what_has_gone_meanwhile_is_not_new);
    RUN(a_directory_is_searched_as_deep_as_it_may_be);
    RUN(a_parent_is_there_or_is_made);
    RUN(a_file_with_a_second_name_is_known_by_its_size_and_time);
    RUN(a_file_that_is_as_wanted_is_not_changed_again);
    return 0;
}
