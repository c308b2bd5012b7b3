import { release } from "node:os";
import { BrigError, isBrigError } from "../errors.js";
import { step } from "../lib/steps.js";
import type { LinkJournal } from "./channel/link-journal.js";
import { type LinkOptions, RunnerLink } from "./channel/runner-link.js";
import type { SandboxContainer } from "./container.js";
import type { Engine, ExecStream } from "./docker/engine-types.js";
import type { InspectionOptions } from "./egress/inspection.js";
import type { EgressOptions } from "./egress/open-egress.js";
import { readReport } from "./files/files.js";
import type { KnownListeners } from "./listeners/cover-listeners.js";
import { watchListeners } from "./listeners/watch-listeners.js";
import { egressInForce } from "./network/egress/in-force.js";
import type { EarlierEgress, SandboxEgress } from "./network/egress/sandbox-egress.js";
import { filesProgramPath } from "./plan/create-body.js";
import type { SandboxPlan } from "./plan/plan.js";
import type { NetworkScope } from "./policy/network.js";
import { type KernelReport, parseReport } from "./proof/kernel-report.js";
import { type Proof, proveSandbox } from "./proof/proof.js";
import { WrongKernel } from "./proof/right-kernel.js";
import type { SandboxOptions } from "./sandbox-options.js";

/** The time spent on trying to reopen a broken stream; a shorter lease shortens it. */
const RECONNECT_MS = 60_000;

interface ConnectOptions {
  signal?: AbortSignal | undefined;
  onLateOutput?: ((data: Buffer, call: number) => void) | undefined;
  inspection?: InspectionOptions | null | undefined;
  /** Null or undefined where no program of the host can come to listen. */
  listeners?: KnownListeners | null | undefined;
  /** Where another process can read how to go on. Default: nowhere. */
  journal?: LinkJournal | null | undefined;
}

export interface ConnectedSandbox {
  link: RunnerLink;
  proof: Proof;
  report: KernelReport;
}

/** Connects to the runner of a started container, and proves the policy. Errors: as `Sandbox.create`. */
export async function connectAndProve(
  container: SandboxContainer,
  options: ConnectOptions,
): Promise<ConnectedSandbox> {
  const link = await RunnerLink.open({ ...linkOptions(container, options), first: container.attached });
  step("the runner has answered");
  return await proved(link, container, options);
}

/** The same for a container whose runner another process has spoken with. `adopt` is as in `RunnerLink.resume`. */
export async function resumeAndProve(
  container: SandboxContainer,
  options: ConnectOptions,
  resumption: Parameters<typeof RunnerLink.resume>[1],
): Promise<ConnectedSandbox> {
  const link = await RunnerLink.resume(linkOptions(container, options), resumption);
  return await proved(link, container, options);
}

async function proved(
  link: RunnerLink,
  container: SandboxContainer,
  { signal, inspection, listeners }: ConnectOptions,
): Promise<ConnectedSandbox> {
  try {
    const proved = await proveLink(link, container);
    step("the policy is proved");
    signal?.throwIfAborted();
    if (listeners) watchListeners(link, listeners);
    const egress = inspection ? { egress: egressInForce(inspection) } : {};
    return { link, report: proved.report, proof: { ...proved.proof, ...egress } };
  } catch (error) {
    link.close(
      new BrigError("the start of the sandbox failed", {
        code: "sandbox.gone",
        reason: "closed",
        cause: error,
      }),
    );
    throw error;
  }
}

interface OpenEgressOptions
  extends Pick<SandboxOptions, "onEgress" | "signal">,
    Pick<EgressOptions, "resolve" | "upstream"> {
  /** Called when another list of hosts comes into force for commands. */
  onNetwork?: ((network: NetworkScope) => void) | undefined;
  inspection?: InspectionOptions | null | undefined;
  /** As another process has opened it. Default: it is opened for the first time. */
  earlier?: EarlierEgress | undefined;
}

/** Null for a plan without an allow-list. */
export async function openEgressOf(
  link: RunnerLink,
  plan: SandboxPlan,
  { onEgress, onNetwork, signal, resolve, upstream, inspection, earlier }: OpenEgressOptions,
): Promise<SandboxEgress | null> {
  const { egress } = plan;
  if (egress === null) return null;
  const { SandboxEgress } = await import("./network/egress/sandbox-egress.js");
  try {
    const opened = await SandboxEgress.open(link, {
      ...{ hosts: egress.hosts, onEgress, onNetwork, signal, resolve, upstream, inspection, earlier, plan },
    });
    step("the allow-list is in force");
    return opened;
  } catch (error) {
    signal?.throwIfAborted();
    // `usage.invalid` means that the file of a canary cannot be written.
    if (isBrigError(error, "sandbox.gone") || isBrigError(error, "usage.invalid")) throw error;
    throw new BrigError(
      "a list of allowed hosts cannot be enforced here: brig cannot listen in the sandbox",
      {
        code: "policy.not-enforced",
        hint: "use --network none or --network full, or another runtime",
        cause: error,
      },
    );
  }
}

function linkOptions(
  container: SandboxContainer,
  { onLateOutput, inspection, journal }: ConnectOptions,
): LinkOptions {
  const { engine, plan, token } = container;
  const mask = inspection?.mask;
  const leaseMs = plan.leaseSeconds * 1000;
  return {
    token,
    journal: journal ?? undefined,
    dial: () => openBridge(engine, container.id, plan),
    diagnose: (brokenForMs, { wasRefused }) =>
      container.diagnose({ leaseIsOver: leaseMs > 0 && brokenForMs >= leaseMs, wasRefused }),
    reconnectForMs: leaseMs > 0 ? Math.min(leaseMs, RECONNECT_MS) : RECONNECT_MS,
    onLate: (call, data) => deliverLate(onLateOutput, mask?.bytes(data) ?? Buffer.from(data), call),
  };
}

/** No call is waiting that could report an error of the listener, so it becomes a process warning. */
function deliverLate(onLateOutput: ConnectOptions["onLateOutput"], data: Buffer, call: number): void {
  try {
    onLateOutput?.(data, call);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}

/** Reads the policy back from the kernel. Error: `policy.not-enforced`. */
export async function proveLink(
  link: RunnerLink,
  { plan, engine, imageId }: Pick<SandboxContainer, "plan" | "engine" | "imageId">,
): Promise<Omit<ConnectedSandbox, "link">> {
  const context = { link, cwd: "/", env: {}, onStuck: () => undefined };
  const paths = [...plan.mounts, ...plan.covered, ...(plan.overlay?.witnesses ?? [])].map(({ path }) => path);
  const report = parseReport(await readReport(context, paths));
  const proof = proveSandbox(plan, report, { engine: await engine.info(), imageId, hostKernel: release() });
  requireStatx(report, proof.runtime);
  if (proof.differences.length === 0) return { proof, report };
  const list = proof.differences.map(
    (one) => `  ${one.assertion}: promised ${one.promised}, the kernel says ${one.kernel}`,
  );
  const refusal = new BrigError(
    `the engine did not enforce the policy ${plan.policyName}:\n${list.join("\n")}`,
    {
      code: "policy.not-enforced",
      hint: "nothing was run; `brig doctor` says what this engine lacks",
    },
  );
  throw report.kernel === plan.kernel ? refusal : new WrongKernel(report.kernel, { cause: refusal });
}

/** Harmless: C libraries handle a kernel without statx. */
const ENOSYS = 38;

/** Refuses a kernel on which `ls` and `stat` of current distributions fail. Error: `engine.too-old`. */
export function requireStatx({ kernel, probes }: KernelReport, runtime: string): void {
  const errno = probes.get("statx");
  if (errno === undefined || errno === 0 || errno === ENOSYS) return;
  const what = `the system call statx with errno ${errno}, so that ls, stat and others fail`;
  if (kernel === "gvisor")
    throw new BrigError(
      `the runtime ${JSON.stringify(runtime)} is a release of gVisor that answers ${what}`,
      {
        code: "engine.too-old",
        hint: "nothing was run; install gVisor of 2024 or later, as in Debian 13's package runsc, and give its path to the engine",
      },
    );
  throw new BrigError(`in containers of the runtime ${JSON.stringify(runtime)} the kernel answers ${what}`, {
    code: "engine.too-old",
    hint: "nothing was run; a newer engine, libseccomp or kernel lets statx through",
  });
}

/** Ids for the user and the group, below 65536: the user namespace of a rootless engine has no higher ones. */
const BRIDGE_IDS = [65_521, 65_522];

/**
 * Starts `runner-files connect` as a user of its own: a command of the same user could kill it before it hands its
 * streams to PID 1.
 */
export async function openBridge(engine: Engine, id: string, plan: SandboxPlan): Promise<ExecStream> {
  const bridge = BRIDGE_IDS.find((one) => one !== plan.user.uid && one !== plan.user.gid);
  return await engine.openExec(id, [filesProgramPath(plan), "connect"], { user: `${bridge}:${bridge}` });
}
