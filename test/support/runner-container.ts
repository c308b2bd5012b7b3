import { createHash, randomBytes } from "node:crypto";
import { finished } from "node:stream/promises";
import { BrigError } from "../../src/errors.js";
import { Demultiplexer } from "../../src/sandbox/channel/frames.js";
import { RunnerLink } from "../../src/sandbox/channel/runner-link.js";
import type { Engine, Mount } from "../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { requireToolbox } from "../../src/sandbox/images/require-toolbox.js";
import { toolboxIn } from "../../src/sandbox/images/toolbox-volume.js";
import { TOOLBOX_PATH } from "../../src/sandbox/plan/create-body.js";
import { loadSeccompProfile } from "../../src/sandbox/policy/policy-directory.js";
import type { CommandContext } from "../../src/sandbox/process/command.js";
import { containerBody } from "./container-body.js";
import { toolboxUnderTest } from "./sandbox.js";
import { testLabels } from "./test-run.js";

/** A container with the runner as its first program, and without a sandbox around it. */
export interface RunnerContainer extends AsyncDisposable {
  readonly id: string;
  /** In hex, for somebody else to connect to the runner. */
  readonly token: string;
  /** Throws if the container was started with `isConnected: false`. */
  readonly context: CommandContext;
  /** Runs a shell script over the engine's own exec. Throws unless it succeeds; returns what it printed. */
  shell(script: string, user?: string): Promise<string>;
}

export interface RunnerContainerOptions {
  user: string;
  capabilities?: string[];
  mounts: Mount[];
  tmpfs?: Record<string, string>;
  /** Default: brig's own. */
  image?: string;
  /** Default: true. Only one program can be connected to a runner, from first to last. */
  isConnected?: boolean;
}

export async function startRunnerContainer(
  engine: Engine,
  { user, capabilities = [], mounts, tmpfs = {}, image, isConnected = true }: RunnerContainerOptions,
): Promise<RunnerContainer> {
  const token = randomBytes(32);
  const watched = await toolboxUnderTest();
  const toolbox = watched === undefined ? await requireToolbox(engine) : await toolboxIn(engine, watched);
  const base = image ?? (await ensureImages(engine, { names: ["base"] })).base;
  const program = `${TOOLBOX_PATH}/runner`;
  const hash = createHash("sha256").update(token).digest("hex");
  const toolboxMount = {
    Type: "volume",
    Source: toolbox.volume,
    Target: TOOLBOX_PATH,
    ReadOnly: true,
  } as const;
  const id = await engine.createContainer(
    containerBody(base, [program, "serve", "--token-hash", hash, "--lease", "60"], {
      User: user,
      Labels: testLabels(),
      host: {
        CapDrop: ["ALL"],
        CapAdd: capabilities,
        SecurityOpt: ["no-new-privileges", `seccomp=${await loadSeccompProfile("brig")}`],
        Mounts: [toolboxMount, ...mounts],
        Tmpfs: tmpfs,
      },
    }),
  );
  const remove = async () => await engine.removeContainer(id);
  try {
    await engine.startContainer(id);
    const link = isConnected ? await connect(engine, { id, program, token }) : null;
    return {
      id,
      token: token.toString("hex"),
      get context() {
        if (link === null) throw new Error("nobody is connected to this runner");
        return { link, cwd: "/", env: {}, onStuck: () => undefined };
      },
      shell: async (script, as = user) => await shell(engine, { id, script, user: as }),
      async [Symbol.asyncDispose]() {
        link?.close(gone("the test is done"));
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function connect(
  engine: Engine,
  { id, program, token }: { id: string; program: string; token: Buffer },
): Promise<RunnerLink> {
  return await RunnerLink.open({
    token,
    dial: async () => await engine.openExec(id, [`${program}-files`, "connect"], { user: "65521:65521" }),
    diagnose: async () =>
      (await engine.inspectContainer(id))?.running ? "runs" : gone("the container has ended"),
    reconnectForMs: 10_000,
    onLate: () => undefined,
  });
}

function gone(message: string): BrigError {
  return new BrigError(message, { code: "sandbox.gone", reason: "closed" });
}

async function shell(
  engine: Engine,
  { id, script, user }: { id: string; script: string; user: string },
): Promise<string> {
  const { stream, inspect } = await engine.openExec(id, ["bash", "-euc", script], { user });
  const frames = new Demultiplexer();
  const pieces: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => frames.push(chunk, (data) => void pieces.push(Buffer.from(data))));
  stream.end();
  await finished(stream, { writable: false });
  let state = await inspect();
  while (state.running) state = await inspect();
  const output = Buffer.concat(pieces).toString("latin1");
  if (state.exitCode !== 0) throw new Error(`${script}\nended with ${state.exitCode}: ${output}`);
  return output;
}
