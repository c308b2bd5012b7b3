/*
 * Tests of how a merged tree differs from its base. Ordinary directories stand for the three of an overlay: a file of the base that is not touched is a
 * second name of the same file.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../../../runner-files/changes.c"
#include "../../../runner-files/sight.c"

#include "digest.h"
#include "root.h"

#define MOST_CHANGES 64

struct seen {
    uint8_t bytes[CHANGES_RECORD_BYTES];
    char path[PATH_MAX], target[PATH_MAX];
};

static struct seen seen[MOST_CHANGES];
static size_t seen_count;
static uint8_t answer[CHANGES_RESULT_BYTES];
static uint32_t cancelled;

static void begin(void) {
    empty_root();
    REQUIRE(mkdir(in_root("merged"), 0700) == 0 && mkdir(in_root("base"), 0700) == 0 && mkdir(in_root("upper"), 0700) == 0);
    cancelled = 0;
}

/* The same name in the trees that the letters stand for: m, b and u. */
static void make_directory(const char *trees, const char *name) {
    char path[256];
    for (const char *at = trees; *at; at++) {
        snprintf(path, sizeof path, "%s/%s", *at == 'm' ? "merged" : *at == 'b' ? "base" : "upper", name);
        REQUIRE(mkdir(in_root(path), 0700) == 0);
    }
}

static void put_in(const char *tree, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    put_file(path, text);
}

static void touch_upper(const char *name) { put_in("upper", name, ""); }

static void leave_untouched(const char *name) {
    char base[256], merged[256];
    snprintf(base, sizeof base, "base/%s", name);
    snprintf(merged, sizeof merged, "merged/%s", name);
    put_file(base, name);
    REQUIRE(link(in_root(base), in_root(merged)) == 0);
}

static void read_changes(int fd) {
    FILE *file = fdopen(fd, "r");
    REQUIRE(file);
    rewind(file);
    for (seen_count = 0; fread(seen[seen_count].bytes, CHANGES_RECORD_BYTES, 1, file) == 1; seen_count++) {
        struct seen *one = &seen[seen_count];
        size_t length = get32(one->bytes + 4), target = get32(one->bytes + 8);
        REQUIRE(seen_count + 1 < MOST_CHANGES && length < PATH_MAX && target < PATH_MAX);
        REQUIRE(fread(one->path, 1, length, file) == length && fread(one->target, 1, target, file) == target);
        one->path[length] = one->target[target] = 0;
    }
    fclose(file);
}

/* `left_out` is a list of paths, each with a NUL behind it. */
static uint32_t changes(uint8_t flags, int64_t since, const char *left_out, size_t left_out_size) {
    char second[1024];
    FILE *file = tmpfile();
    size_t base = strlen(in_root("base")) + 1, upper = strlen(in_root("upper")) + 1;
    REQUIRE(file);
    memcpy(second, in_root("base"), base);
    memcpy(second + base, in_root("upper"), upper);
    memcpy(second + base + upper, left_out, left_out_size);
    const char *merged = in_root("merged");
    struct file_job job = {.stream = dup(fileno(file)), .cancelled = &cancelled};
    struct file_request request = {.flags = flags, .offset = (uint64_t)since, .path = (const uint8_t *)merged, .path_length = (uint32_t)strlen(merged)};
    request.second = (const uint8_t *)second;
    request.second_length = (uint32_t)(base + upper + left_out_size);
    struct file_result result = {.bytes = answer};
    fclose(file);
    uint32_t error = changes_run(&job, &request, &result);
    REQUIRE(error || result.length == CHANGES_RESULT_BYTES);
    read_changes(job.stream);
    REQUIRE(error || (get64(answer + 8) == seen_count && get64(answer) > 0));
    return error;
}

static void require_state(const uint8_t *at, const struct stat *st) {
    REQUIRE(get64(at) == (uint64_t)st->st_size && get64(at + 8) == (uint64_t)file_time(st->st_mtim));
    REQUIRE(get64(at + 16) == (uint64_t)file_time(st->st_ctim) && get64(at + 24) == st->st_ino);
}

/* Whether the change of this number is of that kind, and says all that the trees show at its path. */
static void require_change(size_t at, uint8_t kind, const char *name) {
    static const uint8_t nothing[CHANGES_RECORD_BYTES];
    const struct seen *one = &seen[at];
    struct stat now = {0}, before = {0};
    char path[PATH_MAX + 8];
    REQUIRE(at < seen_count && strcmp(one->path, name) == 0 && one->bytes[0] == kind && one->bytes[3] == 0);
    snprintf(path, sizeof path, "merged/%s", name);
    if (lstat(in_root(path), &now) == 0) {
        REQUIRE(one->bytes[1] == file_type(now.st_mode) && get32(one->bytes + 12) == (now.st_mode & 07777));
        REQUIRE(get32(one->bytes + 16) == now.st_uid && get32(one->bytes + 20) == now.st_gid && get32(one->bytes + 24) == now.st_nlink);
        require_state(one->bytes + 32, &now);
        REQUIRE(get64(one->bytes + 64) == now.st_rdev && S_ISLNK(now.st_mode) == (one->target[0] != 0));
    } else {
        REQUIRE(one->bytes[1] == 0 && memcmp(one->bytes + 12, nothing, 16) == 0 && memcmp(one->bytes + 32, nothing, 40) == 0);
    }
    snprintf(path, sizeof path, "base/%s", name);
    if (lstat(in_root(path), &before) == 0) {
        REQUIRE(one->bytes[2] == file_type(before.st_mode) && get32(one->bytes + 28) == (before.st_mode & 07777));
        require_state(one->bytes + 72, &before);
        REQUIRE(get64(one->bytes + 104) == before.st_dev);
    } else {
        REQUIRE(one->bytes[2] == 0 && get32(one->bytes + 28) == 0 && memcmp(one->bytes + 72, nothing, 40) == 0);
    }
}

static void only_what_was_touched_and_differs_is_a_change(void) {
    begin();
    for (const char *name = "abcdefgh"; *name; name++) {
        char one[2] = {*name, 0};
        if (*name != 'h') touch_upper(one);
    }
    put_in("merged", "a", "new");
    put_in("base", "b", "old");
    put_in("merged", "c", "changed");
    put_in("base", "c", "old one");
    put_in("merged", "d", "the same");
    put_in("base", "d", "the same");
    leave_untouched("e");
    put_in("merged", "f", "longer");
    put_in("base", "f", "long");
    put_in("merged", "g", "");
    put_in("base", "g", "");
    put_in("merged", "h", "not touched, so it is not looked at");
    REQUIRE(changes(0, 0, "", 0) == 0 && seen_count == 4 && get64(answer + 16) == 0 && get64(answer + 24) == 0);
    require_change(0, CHANGE_ADDED, "a");
    require_change(1, CHANGE_DELETED, "b");
    require_change(2, CHANGE_MODIFIED, "c");
    require_change(3, CHANGE_MODIFIED, "f");
    REQUIRE(changes(CHANGES_LIST_SAME, 0, "", 0) == 0 && seen_count == 7);
    require_change(3, CHANGE_SAME, "d");
    require_change(4, CHANGE_SAME, "e");
    require_change(6, CHANGE_SAME, "g");
}

static void what_is_no_file_is_compared_by_what_it_is(void) {
    begin();
    static const char *const names[] = {"fifo", "link", "link-same", "mode", "type", "zero", "zero-same"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) touch_upper(names[i]);
    REQUIRE(mkfifo(in_root("merged/fifo"), 0600) == 0 && mkfifo(in_root("base/fifo"), 0600) == 0);
    REQUIRE(symlink("new", in_root("merged/link")) == 0 && symlink("old", in_root("base/link")) == 0);
    REQUIRE(symlink("one", in_root("merged/link-same")) == 0 && symlink("one", in_root("base/link-same")) == 0);
    put_in("merged", "mode", "");
    put_in("base", "mode", "");
    REQUIRE(chmod(in_root("merged/mode"), 0755) == 0 && chmod(in_root("base/mode"), 0700) == 0);
    put_in("merged", "type", "old");
    REQUIRE(symlink("old", in_root("base/type")) == 0);
    REQUIRE(mknod(in_root("merged/zero"), S_IFCHR | 0600, 0x105) == 0 && mknod(in_root("base/zero"), S_IFCHR | 0600, 0x103) == 0);
    REQUIRE(mknod(in_root("merged/zero-same"), S_IFCHR | 0600, 0x105) == 0 && mknod(in_root("base/zero-same"), S_IFCHR | 0600, 0x105) == 0);
    REQUIRE(changes(0, 0, "", 0) == 0 && seen_count == 4);
    require_change(0, CHANGE_MODIFIED, "link");
    REQUIRE(strcmp(seen[0].target, "new") == 0);
    require_change(1, CHANGE_MODIFIED, "mode");
    require_change(2, CHANGE_MODIFIED, "type");
    require_change(3, CHANGE_MODIFIED, "zero");
    REQUIRE(changes(CHANGES_LIST_SAME, 0, "", 0) == 0 && seen_count == 7);
    require_change(0, CHANGE_SAME, "fifo");
    require_change(2, CHANGE_SAME, "link-same");
    REQUIRE(strcmp(seen[2].target, "one") == 0);
}

static void directories_are_entered_and_what_is_gone_is_counted_with_all_below_it(void) {
    begin();
    make_directory("mbu", "d");
    make_directory("mbu", "d/deeper");
    leave_untouched("d/kept");
    put_in("merged", "d/added", "x");
    put_in("base", "d/gone", "x");
    put_in("merged", "d/deeper/added", "x");
    make_directory("b", "removed");
    make_directory("b", "removed/inner");
    put_in("base", "removed/inner/file", "x");
    put_in("base", "removed/file", "x");
    touch_upper("removed");
    make_directory("mu", "new");
    put_in("merged", "new/file", "x");
    make_directory("m", "was-file");
    put_in("merged", "was-file/inner", "x");
    put_in("base", "was-file", "x");
    touch_upper("was-file");
    REQUIRE(changes(CHANGES_COUNT_BELOW, 0, "", 0) == 0);
    static const struct {
        uint8_t kind;
        const char *path;
    } expected[] = {
        {CHANGE_ADDED, "d/added"}, {CHANGE_ADDED, "d/deeper/added"}, {CHANGE_DELETED, "d/gone"}, {CHANGE_ADDED, "new"},
        {CHANGE_ADDED, "new/file"}, {CHANGE_DELETED, "removed"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        require_change(i, expected[i].kind, expected[i].path);
        REQUIRE(get64(seen[i].bytes + 112) == (i == 5 ? 3 : 0));
    }
    REQUIRE(seen_count == 7 && seen[6].bytes[0] == CHANGE_MODIFIED && strcmp(seen[6].path, "was-file") == 0);
    REQUIRE(changes(0, 0, "", 0) == 0 && get64(seen[5].bytes + 112) == 0);
    REQUIRE(chmod(in_root("merged/d"), 0711) == 0 && changes(0, 0, "", 0) == 0 && seen_count == 8);
    require_change(0, CHANGE_MODIFIED, "d");
    require_change(1, CHANGE_ADDED, "d/added");
}

static void some_paths_are_left_out_with_all_below_them(void) {
    static const char left_out[] = "b\0d/inner\0nowhere";
    begin();
    make_directory("mu", "b");
    make_directory("mu", "d");
    make_directory("m", "d/inner");
    put_in("merged", "b/x", "x");
    put_in("merged", "bb", "x");
    put_in("merged", "d/inner/x", "x");
    put_in("merged", "d/x", "x");
    touch_upper("bb");
    REQUIRE(changes(0, 0, left_out, sizeof left_out) == 0 && seen_count == 3);
    require_change(0, CHANGE_ADDED, "bb");
    require_change(1, CHANGE_ADDED, "d");
    require_change(2, CHANGE_ADDED, "d/x");
}

/* The host gets a number and a digest of what has not changed since it last asked. */
static void older_changes_are_only_counted(void) {
    struct stat st;
    uint8_t digest[32], empty[32], expected[32], head[4], state[16];
    struct sha256 hash;
    begin();
    touch_upper("a");
    touch_upper("b");
    touch_upper("gone");
    put_in("merged", "a", "x");
    put_in("merged", "b", "x");
    put_in("base", "gone", "x");
    REQUIRE(changes(0, 0, "", 0) == 0 && seen_count == 3);
    memcpy(empty, answer + 32, 32);
    digest_of(head, 0, expected);
    REQUIRE(memcmp(empty, expected, 32) == 0);
    REQUIRE(lstat(in_root("merged/a"), &st) == 0);
    int64_t since = file_time(st.st_ctim);
    usleep(20000);
    put_in("merged", "b", "changed");
    struct stat whiteout;
    put_in("upper", "gone", "again");
    REQUIRE(lstat(in_root("upper/gone"), &whiteout) == 0 && file_time(whiteout.st_ctim) > since);
    REQUIRE(changes(0, since, "", 0) == 0 && seen_count == 3 && get64(answer + 16) == 0);
    REQUIRE(changes(0, since + 1, "", 0) == 0 && seen_count == 2 && get64(answer + 16) == 1);
    require_change(0, CHANGE_ADDED, "b");
    require_change(1, CHANGE_DELETED, "gone");
    memcpy(digest, answer + 32, 32);
    put32(head, 1);
    put64(state, st.st_ino);
    put64(state + 8, (uint64_t)since);
    sha256_begin(&hash);
    sha256_add(&hash, head, sizeof head);
    sha256_add(&hash, (const uint8_t *)"a", 1);
    sha256_add(&hash, state, sizeof state);
    sha256_end(&hash, expected);
    REQUIRE(memcmp(digest, expected, 32) == 0);
    REQUIRE(changes(0, file_time(whiteout.st_ctim) + 1, "", 0) == 0 && seen_count == 0 && get64(answer + 16) == 3);
}

/* The time of a deletion is that of its whiteout, whichever entry was looked at before. */
static void what_is_gone_is_as_new_as_what_hides_it(void) {
    struct stat hides, newer;
    begin();
    touch_upper("b");
    put_in("base", "b", "x");
    touch_upper("a");
    REQUIRE(lstat(in_root("upper/b"), &hides) == 0);
    do {
        put_in("merged", "a", "x");
        REQUIRE(lstat(in_root("merged/a"), &newer) == 0);
    } while (file_time(newer.st_ctim) <= file_time(hides.st_ctim));
    REQUIRE(changes(0, file_time(newer.st_ctim), "", 0) == 0 && seen_count == 1 && get64(answer + 16) == 1);
    require_change(0, CHANGE_ADDED, "a");
    REQUIRE(changes(0, file_time(hides.st_ctim), "", 0) == 0 && seen_count == 2 && get64(answer + 16) == 0);
}

static void a_tree_may_be_deeper_than_the_directories_that_are_kept_open(void) {
    char path[240] = "d", closed[256] = "";
    begin();
    for (int i = 0; i < OPEN_LEVELS + 10; i++) {
        make_directory("mbu", path);
        if (i == OPEN_LEVELS + 5) snprintf(closed, sizeof closed, "%s/zz", path);
        strcat(path, "/d");
    }
    put_in("merged", path, "x");
    /* The scan closes directories when it has descended far, and opens them again on the way back: these names come after that. */
    put_in("merged", closed, "x");
    put_in("base", closed, "old");
    put_in("upper", closed, "x");
    put_in("merged", "d/d/d/zz", "x");
    /* So few descriptors that the scan has to close directories on its way down. Of each one that is open it has up to three: one in each tree. */
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 4 * OPEN_LEVELS);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3 * OPEN_LEVELS + 24, limit.rlim_max}) == 0);
    REQUIRE(changes(0, 0, "", 0) == 0 && seen_count == 3);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    require_change(0, CHANGE_ADDED, path);
    require_change(1, CHANGE_MODIFIED, closed);
    require_change(2, CHANGE_ADDED, "d/d/d/zz");
}

/* The names in it are not known then, so the answer says how many directories there are of that kind. */
static void a_directory_that_must_not_be_read_is_counted(void) {
    begin();
    make_directory("mbu", "closed");
    make_directory("mbu", "open");
    put_in("merged", "open/new", "x");
    touch_upper("open/new");
    REQUIRE(chmod(in_root("merged/closed"), 0100) == 0 && chmod(root, 0755) == 0);
    int status;
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        char command[200];
        snprintf(command, sizeof command, "chown -R 1234 %s", root);
        REQUIRE(system(command) == 0 && setuid(1234) == 0);
        REQUIRE(changes(0, 0, "", 0) == 0 && seen_count == 2 && get64(answer + 24) == 1);
        require_change(0, CHANGE_MODIFIED, "closed");
        require_change(1, CHANGE_ADDED, "open/new");
        _exit(0);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_question_that_nobody_wants_answered_ends(void) {
    begin();
    touch_upper("a");
    put_in("merged", "a", "x");
    cancelled = 1;
    REQUIRE(changes(0, 0, "", 0) == ECANCELED && seen_count == 0);
    cancelled = 0;
    REQUIRE(rename(in_root("upper"), in_root("moved")) == 0 && changes(0, 0, "", 0) == ENOENT);
    REQUIRE(symlink("moved", in_root("upper")) == 0 && changes(0, 0, "", 0) == ENOTDIR);
}

/* ---- is it the base's own? ----------------------------------------------------------------------------------------- */

static bool is_own(struct sight sight, dev_t base_device, dev_t upper_device) {
    const dev_t devices[SIDES] = {[MERGED] = 1, [BASE] = base_device, [UPPER] = upper_device};
    return sight_is_base_object(&sight, devices);
}

static void the_number_of_a_file_tells_whether_it_is_the_bases_own(void) {
    const struct stat file = {.st_mode = S_IFREG, .st_ino = 5, .st_dev = 2};
    struct sight one = {.has = {true, true, false}, .st = {[MERGED] = file, [BASE] = file}};
    struct sight other = one;
    REQUIRE(is_own(one, 2, 2) && !is_own(one, 3, 3));
    other.st[MERGED].st_ino = 6;
    REQUIRE(!is_own(other, 2, 2));
    other = one;
    other.st[MERGED].st_mode = S_IFIFO;
    REQUIRE(!is_own(other, 2, 2));
    for (int side = MERGED; side <= BASE; side++) {
        other = one;
        other.has[side] = false;
        REQUIRE(!is_own(other, 2, 2));
    }
    /* Layers on two file systems: the highest bits have the number of the layer. */
    REQUIRE(!is_own(one, 2, 3));
    one.st[MERGED].st_ino = UINT64_C(1) << INODE_BITS | 5;
    REQUIRE(is_own(one, 2, 3));
    other = one;
    other.st[BASE].st_ino = UINT64_C(1) << INODE_BITS | 5;
    REQUIRE(!is_own(other, 2, 3));
    other = one;
    other.st[BASE].st_ino = UINT64_C(1) << (INODE_BITS - 1) | 5;
    REQUIRE(!is_own(other, 2, 3));
    other = one;
    other.has[UPPER] = true;
    other.st[UPPER].st_ino = 5;
    REQUIRE(!is_own(other, 2, 3));
    other.st[UPPER].st_ino = 6;
    REQUIRE(is_own(other, 2, 3));
}

static void a_name_is_looked_at_in_every_tree_that_there_is(void) {
    struct sight sight;
    begin();
    put_in("merged", "x", "x");
    put_in("upper", "x", "xx");
    int directories[SIDES] = {open(in_root("merged"), O_PATH), -1, open(in_root("upper"), O_PATH)};
    REQUIRE(sight_take(directories, "x", &sight) == 0 && sight.has[MERGED] && !sight.has[BASE] && sight.has[UPPER]);
    REQUIRE(sight.st[MERGED].st_size == 1 && sight.st[UPPER].st_size == 2 && !sight_is_directory(&sight, MERGED));
    REQUIRE(sight_take(directories, "y", &sight) == 0 && !sight.has[MERGED] && !sight.has[UPPER]);
    REQUIRE(sight_take(directories, ".", &sight) == 0 && sight_is_directory(&sight, MERGED) && !sight_is_directory(&sight, BASE));
    static const int gone[] = {ENOENT, ENOTDIR, ESTALE, EACCES, ELOOP};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) REQUIRE(has_disappeared(gone[i]));
    close(directories[MERGED]);
    REQUIRE(sight_take(directories, "x", &sight) == EBADF && !has_disappeared(EIO));
    close(directories[UPPER]);
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */

static void names_are_in_order_each_once_and_directories_twice(void) {
    struct names names = {0};
    begin();
    make_directory("mb", "d");
    put_in("merged", "d.x", "");
    put_in("base", "a", "");
    put_in("merged", "a", "");
    for (int i = 0; i < 2; i++) REQUIRE(names_add(&names, open(in_root(i ? "base" : "merged"), O_RDONLY | O_DIRECTORY), 1000) == 0);
    names_sort(&names);
    static const char *const expected[] = {"a", "d", "d.x", "d/"};
    REQUIRE(names.count == 4 && names.bytes >= 7 * 24);
    for (size_t i = 0; i < 4; i++) REQUIRE(strcmp(names.names[i], expected[i]) == 0);
    REQUIRE(names_add(&names, open(in_root("merged"), O_RDONLY | O_DIRECTORY), names.bytes - 1) == ENOMEM && names.count == 4);
    REQUIRE(names_add(&names, open(in_root("base"), O_RDONLY | O_DIRECTORY), names.bytes) != 0 && names.count > 4);
    names_free(&names);
    REQUIRE(names.count == 0 && names.bytes == 0 && !names.names && names_add(&names, -1, 1) == EBADF);
    names_sort(&names);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-changes-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(only_what_was_touched_and_differs_is_a_change);
    RUN(what_is_no_file_is_compared_by_what_it_is);
    RUN(directories_are_entered_and_what_is_gone_is_counted_with_all_below_it);
    RUN(some_paths_are_left_out_with_all_below_them);
    RUN(older_changes_are_only_counted);
    RUN(what_is_gone_is_as_new_as_what_hides_it);
    RUN(a_tree_may_be_deeper_than_the_directories_that_are_kept_open);
    RUN(a_directory_that_must_not_be_read_is_counted);
    RUN(a_question_that_nobody_wants_answered_ends);
    RUN(the_number_of_a_file_tells_whether_it_is_the_bases_own);
    RUN(a_name_is_looked_at_in_every_tree_that_there_is);
    RUN(names_are_in_order_each_once_and_directories_twice);
    return 0;
}
