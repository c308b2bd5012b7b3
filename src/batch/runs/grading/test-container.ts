import type { Sandbox, SecondSandbox } from "../../../sandbox/index.js";
import { openBeside } from "../../../sandbox/index.js";
import { type ImageUser, rootUser } from "../place/image-user.js";

/** A container with tests, in which nothing but brig's own program runs yet. */
export interface TestContainer extends Disposable {
  /** Prepares it. Whatever the agent has left there can be put back or removed. */
  readonly asRoot: Sandbox;
  /** The tests run by this one. */
  readonly asTests: Sandbox;
}

/** Opens a container to both users, to each by a runner of its own unless the container's own runner is theirs. */
export async function openTestContainer(
  sandbox: Sandbox,
  { owner, tests }: { owner: ImageUser; tests: ImageUser },
): Promise<TestContainer> {
  const seconds: SecondSandbox[] = [];
  const close = () => {
    for (const second of seconds) second[Symbol.dispose]();
  };
  const open = async (user: ImageUser) => {
    if (isSame(user, owner)) return sandbox;
    const second = await openBeside(sandbox, user);
    seconds.push(second);
    return second.sandbox;
  };
  try {
    const asRoot = await open(rootUser);
    const asTests = isSame(tests, rootUser) ? asRoot : await open(tests);
    return { asRoot, asTests, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

function isSame(one: ImageUser, other: ImageUser): boolean {
  return one.uid === other.uid && one.gid === other.gid;
}
