import { beforeEach, describe } from "vitest";
import { becomeHostUser, type HostUser, OWNING_USERS } from "./host-users.js";
import { newSandboxTest, type sandboxTest } from "./sandbox.js";

const users = OWNING_USERS.map((user) => ({ user, uid: user.uid, test: newSandboxTest() }));

/**
 * The same tests for each user, who owns what the tests make on the host: what is refused to one may be open to another.
 * The shared sandbox is one for each user and file.
 */
export function forEachHostUser(tests: (test: typeof sandboxTest, user: HostUser) => void): void {
  describe.each(users)("for uid $uid", ({ test, user }) => {
    beforeEach(() => becomeHostUser(user));
    tests(test, user);
  });
}
