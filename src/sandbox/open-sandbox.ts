import { createHash, randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Engine, ImageSummary } from "../docker/engine-types.js";
import { prepareToolbox, requireToolbox } from "../images/require-toolbox.js";
import { type Toolbox, toolboxIn } from "../images/toolbox-volume.js";
import { type HostProcesses, type Owner, ownerOf, readHostProcesses } from "../lib/owner.js";
import { step } from "../lib/steps.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { loadSeccompProfile } from "../policy/policy-directory.js";
import { readVersion } from "../version.js";
import { TOKEN_BYTES } from "./channel/protocol.js";
import type { RunnerLink } from "./channel/runner-link.js";
import { SandboxContainer } from "./container.js";
import { sessionLabels } from "./labels.js";
import { createContainerBody } from "./plan/create-body.js";
import { applyImageSettings } from "./plan/image-settings.js";
import { missingImage } from "./plan/missing-image.js";
import type { SandboxPlan } from "./plan/plan.js";
import { planSandbox } from "./plan/plan-sandbox.js";
import type { Proof } from "./proof/proof.js";
import { cannotLoadRunner, onRightKernel, WrongKernel } from "./proof/right-kernel.js";
import type { SandboxOptions } from "./sandbox-options.js";
import { reclaimPlaceholders } from "./sandbox-records.js";
import { hostDirectories } from "./settings/resolve-settings.js";
import type { SandboxSettings } from "./settings/sandbox-settings.js";
import { queueStart } from "./start-queue.js";
import { type Warn, warner } from "./warnings.js";

/** A started, proved and connected sandbox, before anybody uses it. */
export interface OpenedSandbox {
  plan: SandboxPlan;
  engine: Engine;
  containerId: string;
  link: RunnerLink;
  proof: Proof;
  /** The container keeps running after `release`. */
  isKept: boolean;
  /**
   * Removes the container and the placeholders, or leaves both with `keep`. `isEnding` says that the runner
   * was asked to end. Error: `engine.failed` if the container may still be there; then this can be called
   * again.
   */
  release(how: { isEnding: boolean }): Promise<void>;
  warn: Warn;
}

/** How a sandbox is started, besides what it is to be. */
export interface StartOptions
  extends Pick<SandboxOptions, "signal" | "maxStartsAtOnce" | "onProgress" | "onLateOutput" | "onWarning"> {
  /** May still be connecting. */
  engine: Engine | Promise<Engine>;
  /** A volume to mount at /.brig instead of this version's toolbox. */
  toolboxVolume?: string | undefined;
}

/** Wrong settings are reported first, even when the engine fails or never answers. */
export async function openSandbox(
  settings: SandboxSettings | Promise<SandboxSettings>,
  options: StartOptions,
): Promise<OpenedSandbox> {
  const answering = answeringEngine(options.engine);
  answering.catch(() => undefined);
  const { signal } = options;
  // Whatever does not need the engine is read while it answers.
  if (options.toolboxVolume === undefined) prepareToolbox();
  const [resolved, processes] = await Promise.all([settings, readHostProcesses(hostname())]);
  const engine = await (signal === undefined ? answering : beforeAbort(answering, signal));
  step("the policy is read, and the engine has answered");
  return await queueStart(engine.endpoint, options, () =>
    startOn(engine, { settings: resolved, options, processes }),
  );
}

async function answeringEngine(connecting: Engine | Promise<Engine>): Promise<Engine> {
  const engine = await connecting;
  // Asked early, since it is the slowest answer that a start waits for. A failure is reported where the
  // answer is needed.
  void engine.info().catch(() => undefined);
  return engine;
}

interface Start {
  settings: SandboxSettings;
  options: StartOptions;
}

async function startOn(
  engine: Engine,
  { settings, options, processes }: Start & { processes: HostProcesses },
): Promise<OpenedSandbox> {
  const { brigHome } = settings.environment;
  options.onProgress?.("looking at the image and the workspace");
  const looking = Promise.all([
    requireImage(engine, settings.image),
    options.toolboxVolume === undefined ? requireToolbox(engine) : toolboxIn(engine, options.toolboxVolume),
  ]);
  looking.catch(() => undefined);
  // Before the plan is made, since it takes over the placeholders that a killed session left in the same
  // workspace.
  await reclaimPlaceholders(engine, { brigHome, processes }).catch(warner(options));
  const owner = await ownerOf(process.pid, processes);
  const [[image, toolbox], planned] = await Promise.all([looking, makePlan(settings, { engine, owner })]);
  step("image, toolbox and workspace are looked at");
  const plan = applyImageSettings(planned, image);
  return await onRightKernel(plan.kernel, (kernel) =>
    startProved(
      { ...plan, kernel },
      { engine, settings, options, toolbox, imageId: image.id, recordFor: { brigHome, owner } },
    ),
  );
}

interface ProvedStart extends Start {
  engine: Engine;
  toolbox: Toolbox;
  imageId: string;
  recordFor: { brigHome: string; owner: Owner };
}

async function startProved(
  plan: SandboxPlan,
  { engine, settings: { keep }, options, toolbox, imageId, recordFor }: ProvedStart,
): Promise<OpenedSandbox> {
  const token = randomBytes(TOKEN_BYTES);
  const body = createContainerBody(plan, {
    toolbox,
    tokenHash: createHash("sha256").update(token).digest("hex"),
    seccompJson: await loadSeccompProfile(plan.seccomp),
  });
  const warn = warner(options);
  const container = new SandboxContainer(engine, { plan, keep, warn, recordFor });
  try {
    // The modules that are needed from here on are loaded while the engine starts the container.
    options.onProgress?.("starting the container");
    const loadRest = () => import("./connect-and-prove.js");
    await container.start(body, { imageId, signal: options.signal, whileStarting: loadRest });
    const { connectAndProve } = await loadRest();
    options.onProgress?.("checking the policy inside");
    const running = await connectAndProve(container, {
      plan,
      engine,
      imageId,
      token,
      signal: options.signal,
      onLateOutput: options.onLateOutput,
    });
    const release: OpenedSandbox["release"] = (how) => container.release(how);
    return { plan, engine, containerId: container.id, ...running, isKept: keep, release, warn };
  } catch (error) {
    await container.giveUp();
    throw cannotLoadRunner(error) ? new WrongKernel("gvisor", { cause: error }) : error;
  }
}

async function requireImage(engine: Engine, ref: string): Promise<ImageSummary> {
  const image = await engine.inspectImage(ref);
  if (image) return image;
  throw missingImage(ref);
}

async function makePlan(
  settings: SandboxSettings,
  { engine, owner }: { engine: Engine; owner: Owner },
): Promise<SandboxPlan> {
  const sessionId = randomUUID();
  return await planSandbox({
    ...settings,
    hostUser: { uid: process.getuid?.() ?? 1000, gid: process.getgid?.() ?? 1000 },
    sessionId,
    labels: sessionLabels({
      sessionId,
      version: readVersion(),
      owner,
      createdAt: new Date(),
      leaseSeconds: settings.keep ? 0 : settings.leaseSeconds,
    }),
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: hostDirectories(settings.environment),
  });
}
