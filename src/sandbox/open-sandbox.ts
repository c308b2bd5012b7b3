import { createHash, randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { currentDirectory } from "../config/current-directory.js";
import { type Environment, readEnvironment } from "../config/env.js";
import { connectEngine } from "../docker/connect.js";
import type { Engine, ImageSummary } from "../docker/engine-types.js";
import { prepareToolbox, requireToolbox } from "../images/require-toolbox.js";
import { type Toolbox, toolboxIn } from "../images/toolbox-volume.js";
import { type HostProcesses, type Owner, ownerOf, readHostProcesses } from "../lib/owner.js";
import { step } from "../lib/steps.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import type { LoadedPolicy } from "../policy/policy.js";
import { loadSeccompProfile } from "../policy/policy-directory.js";
import { readVersion } from "../version.js";
import { TOKEN_BYTES } from "./channel/protocol.js";
import type { RunnerLink } from "./channel/runner-link.js";
import { SandboxContainer } from "./container.js";
import { sessionLabels } from "./labels.js";
import { checkedLease, loadChosenPolicy } from "./plan/chosen-policy.js";
import { createContainerBody } from "./plan/create-body.js";
import { withImage } from "./plan/image-settings.js";
import { DEFAULT_IMAGE, missingImage } from "./plan/missing-image.js";
import type { SandboxPlan } from "./plan/plan.js";
import { planSandbox } from "./plan/plan-sandbox.js";
import type { Proof } from "./proof/proof.js";
import { cannotLoadRunner, OtherKernel, onRightKernel } from "./proof/right-kernel.js";
import type { SandboxOptions } from "./sandbox-options.js";
import { reclaimPlaceholders } from "./sandbox-records.js";
import { inTurn } from "./turns.js";
import { type Warn, warner } from "./warnings.js";

/** A started, proved and connected sandbox, before anybody uses it. */
export interface OpenedSandbox {
  plan: SandboxPlan;
  engine: Engine;
  containerId: string;
  link: RunnerLink;
  proof: Proof;
  /** It goes on after `release`. */
  isKept: boolean;
  /**
   * Removes the container and the placeholders, or leaves both with `keep`. `isEnding`: the runner was asked to end. Error:
   * `engine.failed` when the container is not proved gone; then it may be called again.
   */
  release(how: { isEnding: boolean }): Promise<void>;
  warn: Warn;
}

export async function openSandbox(options: SandboxOptions): Promise<OpenedSandbox> {
  options.signal?.throwIfAborted();
  const environment = options.environment ?? readEnvironment();
  const leaseSeconds = checkedLease(options.leaseSeconds);
  // What takes no engine is read while it answers.
  if (options.toolboxVolume === undefined) prepareToolbox();
  const answering = answeringEngine(options, environment);
  // A policy that is wrong is told first, and an engine that fails then is nobody's concern.
  answering.catch(() => undefined);
  const [policy, processes] = await Promise.all([loadChosenPolicy(options), readHostProcesses(hostname())]);
  const { signal } = options;
  const engine = await (signal === undefined ? answering : beforeAbort(answering, signal));
  step("the policy is read, and the engine has answered");
  return await inTurn(engine.endpoint, options, () =>
    startOn(engine, { options, environment, policy, leaseSeconds, processes }),
  );
}

async function answeringEngine(options: SandboxOptions, environment: Environment): Promise<Engine> {
  const engine = await (options.engine ?? connectEngine({ env: environment }));
  // The slowest of the answers that a start waits for. What goes wrong here goes wrong where it is needed.
  void engine.info().catch(() => undefined);
  return engine;
}

interface Wanted {
  options: SandboxOptions;
  environment: Environment;
  policy: LoadedPolicy;
  leaseSeconds: number;
  processes: HostProcesses;
}

async function startOn(
  engine: Engine,
  { options, environment, policy, leaseSeconds, processes }: Wanted,
): Promise<OpenedSandbox> {
  const { brigHome } = environment;
  const looking = Promise.all([
    requireImage(engine, options.image ?? DEFAULT_IMAGE),
    options.toolboxVolume === undefined ? requireToolbox(engine) : toolboxIn(engine, options.toolboxVolume),
  ]);
  looking.catch(() => undefined);
  // Before the plan, which takes over what a killed session left in the same workspace.
  await reclaimPlaceholders(engine, { brigHome, processes }).catch(warner(options));
  const owner = await ownerOf(process.pid, processes);
  const [[image, toolbox], planned] = await Promise.all([
    looking,
    makePlan(options, { environment, engine, policy, leaseSeconds, owner }),
  ]);
  step("image, toolbox and workspace are looked at");
  const plan = withImage(planned, image);
  return await onRightKernel(plan.kernel, (kernel) =>
    startProved(
      { ...plan, kernel },
      {
        engine,
        options,
        toolbox,
        imageId: image.id,
        known: { brigHome, owner },
      },
    ),
  );
}

interface Start {
  engine: Engine;
  options: SandboxOptions;
  toolbox: Toolbox;
  imageId: string;
  known: { brigHome: string; owner: Owner };
}

async function startProved(
  plan: SandboxPlan,
  { engine, options, toolbox, imageId, known }: Start,
): Promise<OpenedSandbox> {
  const token = randomBytes(TOKEN_BYTES);
  const body = createContainerBody(plan, {
    toolbox,
    tokenHash: createHash("sha256").update(token).digest("hex"),
    seccompJson: await loadSeccompProfile(plan.seccomp),
  });
  const warn = warner(options);
  const container = new SandboxContainer(engine, { plan, keep: options.keep ?? false, warn, known });
  try {
    // What is needed only from here on is loaded while the engine starts the container.
    const loadRest = () => import("./connect-and-prove.js");
    await container.start(body, { imageId, signal: options.signal, meanwhile: loadRest });
    const { connectAndProve } = await loadRest();
    const running = await connectAndProve(container, {
      plan,
      engine,
      imageId,
      token,
      signal: options.signal,
      onLateOutput: options.onLateOutput,
    });
    const release: OpenedSandbox["release"] = (how) => container.release(how);
    const isKept = options.keep ?? false;
    return { plan, engine, containerId: container.id, ...running, isKept, release, warn };
  } catch (error) {
    await container.giveUp();
    throw cannotLoadRunner(error) ? new OtherKernel("gvisor", { cause: error }) : error;
  }
}

async function requireImage(engine: Engine, ref: string): Promise<ImageSummary> {
  const image = await engine.inspectImage(ref);
  if (image) return image;
  throw missingImage(ref);
}

async function makePlan(
  options: SandboxOptions,
  found: {
    environment: Environment;
    engine: Engine;
    policy: LoadedPolicy;
    leaseSeconds: number;
    owner: Owner;
  },
): Promise<SandboxPlan> {
  const { environment, engine, policy, leaseSeconds, owner } = found;
  const sessionId = randomUUID();
  const keep = options.keep ?? false;
  return await planSandbox({
    policy,
    workspace: options.workspace ?? currentDirectory(process),
    workspaceKind: options.workspaceKind ?? "bind",
    image: options.image ?? DEFAULT_IMAGE,
    runtime: options.runtime,
    addDirs: options.addDirs ?? [],
    writableRoots: options.writableRoots ?? [],
    env: options.env ?? {},
    hostUser: { uid: process.getuid?.() ?? 1000, gid: process.getgid?.() ?? 1000 },
    leaseSeconds,
    keep,
    sessionId,
    labels: sessionLabels({
      sessionId,
      version: readVersion(),
      owner,
      createdAt: new Date(),
      leaseSeconds: keep ? 0 : leaseSeconds,
    }),
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: {
      homeDirectory: environment.home,
      ownDirectories: [environment.brigHome, environment.codexHome],
    },
  });
}
