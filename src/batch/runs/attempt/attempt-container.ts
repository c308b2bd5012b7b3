import type { Sandbox, StoppedSandbox, StoppedSandboxFiles } from "../../../sandbox/index.js";
import { openedSandboxOf, stopSandbox } from "../../../sandbox/index.js";
import type { TaskStep } from "../../tasks/task.js";
import { removeTests } from "../grading/run-tests.js";
import { openTestContainer } from "../grading/test-container.js";
import type { ImageUser } from "../place/image-user.js";
import { makeDirectories } from "../place/make-directories.js";
import { AGENT_DIRECTORIES, type OpenAgentContainer } from "./agent-container.js";

/** The agent's container, which is stopped after each step and started again for the next. */
export class AttemptContainer {
  readonly cwd: string;
  readonly user: ImageUser;
  readonly memoryLimitBytes: number;
  readonly empty: OpenAgentContainer["empty"];
  readonly networks: OpenAgentContainer["networks"];
  readonly #testUsers: OpenAgentContainer["testUsers"];
  readonly #sandboxes: Sandbox[];
  #stopped: StoppedSandbox | null = null;

  constructor({ sandbox, cwd, user, memory, testUsers, empty, networks }: OpenAgentContainer) {
    this.empty = empty;
    this.networks = networks;
    this.#testUsers = testUsers;
    this.cwd = cwd;
    this.user = user;
    this.memoryLimitBytes = memory.limitBytes;
    this.#sandboxes = [sandbox];
  }

  userOfTests(step: TaskStep): ImageUser {
    return this.#testUsers.get(step) ?? this.user;
  }

  async running(): Promise<Sandbox> {
    if (this.#stopped !== null) this.#sandboxes.push(await this.#stopped.restart());
    this.#stopped = null;
    return this.#current;
  }

  /** Removes the tests, which may belong to another user, in directories that the agent has made its own. */
  async hideTests(): Promise<void> {
    using container = await openTestContainer(await this.running(), { owner: this.user, tests: this.user });
    await removeTests(container.asRoot);
    const wanted = AGENT_DIRECTORIES.map((path) => ({ path, mode: 0o755, owner: this.user }));
    await makeDirectories(container.asRoot, wanted);
  }

  /** Gives access to the container without stopping it, while programs that the agent started run on. */
  async unstopped(): Promise<StoppedSandboxFiles> {
    const { engine, containerId, settings } = openedSandboxOf(await this.running());
    return { engine, containerId, brigHome: settings.environment.brigHome };
  }

  async stop(): Promise<StoppedSandbox> {
    this.#stopped = await stopSandbox(this.#current);
    return this.#stopped;
  }

  /** Removes it while something else goes on. `close` waits for that too. */
  closeEarly(): void {
    void this.close();
  }

  /** Never throws. */
  async close(): Promise<void> {
    for (const sandbox of this.#sandboxes.toReversed()) await sandbox[Symbol.asyncDispose]();
  }

  get #current(): Sandbox {
    return this.#sandboxes.at(-1) as Sandbox;
  }
}
