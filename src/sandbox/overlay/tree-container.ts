import { createHash, randomBytes } from "node:crypto";
import { BrigError } from "../../errors.js";
import { TOKEN_BYTES } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { SandboxContainer } from "../container.js";
import type { Engine } from "../docker/engine-types.js";
import type { Toolbox } from "../images/toolbox-volume.js";
import { createContainerBody } from "../plan/create-body.js";
import type { SandboxPlan } from "../plan/plan.js";
import { loadSeccompProfile } from "../policy/policy-directory.js";
import type { KernelReport } from "../proof/kernel-report.js";
import type { Warn } from "../warnings.js";
import type { TreeContainer } from "./workspace-tree.js";

/** Everything that is needed to start the containers of a tree, besides their plans. */
export interface TreeStart {
  engine: Engine;
  toolbox: Toolbox;
  imageId: string;
  warn: Warn;
  /** Called if the engine may still have a container after its start has failed. */
  onLeft?: (() => void) | undefined;
}

export interface OpenedTreeContainer extends TreeContainer {
  readonly link: RunnerLink;
  readonly report: KernelReport;
}

/**
 * Starts a container in which only brig works, and checks that the kernel enforces its plan. A failure leaves
 * nothing behind.
 */
export async function openTreeContainer(
  plan: SandboxPlan,
  { name, ...start }: TreeStart & { name: string },
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<OpenedTreeContainer> {
  const { engine, toolbox, imageId, warn } = start;
  const token = randomBytes(TOKEN_BYTES);
  const body = createContainerBody(plan, {
    toolbox,
    tokenHash: createHash("sha256").update(token).digest("hex"),
    seccompJson: await loadSeccompProfile(plan.seccomp),
  });
  const container = new SandboxContainer(engine, { plan, keep: false, warn, recordFor: null, name });
  try {
    const loadRest = () => import("../connect-and-prove.js");
    await container.start(body, { imageId, signal, whileStarting: loadRest });
    const { connectAndProve } = await loadRest();
    const { link, report } = await connectAndProve(container, { plan, engine, imageId, token, signal });
    const context = { link, cwd: "/", env: {}, onStuck: () => link.close(ended()) };
    return {
      link,
      report,
      context,
      async close() {
        await container.discard({ isEnding: link.end(ended()) });
      },
    };
  } catch (error) {
    await container.giveUp();
    if (container.mayExist) start.onLeft?.();
    throw error;
  }
}

function ended(): BrigError {
  return new BrigError("the container that works on the workspace's tree was closed", {
    code: "sandbox.gone",
    reason: "closed",
  });
}
