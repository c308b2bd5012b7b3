import { BrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import type { SessionBranch } from "../branch/session-branch.js";
import type { InspectionOptions } from "../egress/inspection.js";
import { userGitConfig } from "../git/user-config.js";
import { LABELS } from "../labels.js";
import { SharedTree } from "../overlay/shared-tree.js";
import { DEFAULT_IMAGE } from "../plan/missing-image.js";
import type { SandboxPlan } from "../plan/plan.js";
import { checkRoots } from "../plan/roots.js";
import type { HostDirectories } from "../plan/workspace.js";
import type { EgressSettings } from "../policy/egress-schema.js";
import { describeNetwork } from "../policy/network.js";
import type { LoadedPolicy } from "../policy/policy.js";
import { GIT_ACCESSES, type SandboxOptions, type StartOption, WORKSPACE_KINDS } from "../sandbox-options.js";
import type { SandboxAbout } from "../sandbox-records.js";
import { hasAllowList } from "../setup/has-allow-list.js";
import type { SetupChoice } from "../setup/resolve-setup.js";
import { loadChosenPolicy, loadFullAccess, type PolicyChoice } from "./chosen-policy.js";
import type { SandboxSettings, SandboxSetup } from "./sandbox-settings.js";

/** Options without the defaults. Unlike those of `SandboxOptions`, they name the workspace and the environment. */
export interface UnresolvedSettings
  extends Omit<
    SandboxOptions,
    StartOption | "engine" | "docker" | "from" | "at" | "workspace" | "dockerfile"
  > {
  /**
   * Like `egress`, but without effect where there is no list of allowed hosts. A function is called only where there is
   * one. Both apply, and what a policy file says as well.
   */
  configuredEgress?: EgressSettings | (() => Promise<EgressSettings | undefined>) | undefined;
  /** Whether rules for requests and secrets are left out, since another process has read them. Default: false. */
  withoutEgress?: boolean | undefined;
  /** Default: none. */
  setup?: SetupChoice | undefined;
  workspace: string | null;
  environment: Environment;
}

const DEFAULT_LEASE_SECONDS = 60;
const MAX_LEASE_SECONDS = 7 * 24 * 3600;

/** Errors: `policy.invalid`, `usage.invalid`. */
export async function resolveSettings(source: UnresolvedSettings): Promise<SandboxSettings> {
  const leaseSeconds = checkedLease(source.leaseSeconds);
  const keep = source.keep ?? false;
  const hasOverlay = isOverlay(source);
  const branch = hasBranch(source) ? await sessionBranch(source, { hasOwnTree: !hasOverlay }) : undefined;
  const policy = await loadChosenPolicy(source);
  const setup = await resolvedSetup(source, policy);
  return {
    policy,
    setup,
    inspection: await inspectionOf(source, {
      loaded: policy,
      lists: hasAllowList(policy.policy.network, setup),
    }),
    workspace: source.workspace,
    branch,
    overlay:
      hasOverlay || branch !== undefined
        ? new SharedTree({ leaseSeconds: keep ? 0 : leaseSeconds })
        : undefined,
    unprotected: source.unprotected,
    user: source.user,
    toldNotices: new Set(),
    image: source.image ?? DEFAULT_IMAGE,
    runtime: source.runtime,
    gpus: checkedGpus(source.gpus),
    limits: source.limits,
    addDirs: source.addDirs ?? [],
    writableRoots: source.writableRoots ?? [],
    env: source.env ?? {},
    leaseSeconds,
    keep,
    environment: source.environment,
  };
}

/** Loaded only where there is a set-up. Error: `usage.invalid`. */
export async function resolvedSetup(
  { setup, ...choice }: Pick<UnresolvedSettings, "setup"> & PolicyChoice,
  chosen: LoadedPolicy,
): Promise<SandboxSetup | undefined> {
  if (setup === undefined) return undefined;
  const { resolveSetup } = await import("../setup/resolve-setup.js");
  return await resolveSetup(setup, { chosen, choice });
}

/** Errors: `usage.invalid`, `policy.invalid`. */
async function inspectionOf(
  { egress, configuredEgress, withoutEgress = false, environment }: UnresolvedSettings,
  { loaded, lists }: { loaded: LoadedPolicy; lists: boolean },
): Promise<InspectionOptions | null> {
  if (withoutEgress) return null;
  const { network, egress: ofPolicy } = loaded.policy;
  if ((egress ?? ofPolicy) !== undefined && network.kind === "full")
    throw new BrigError("rules for requests and secrets need a list of allowed hosts", {
      code: "usage.invalid",
      hint: `leave out ${egress === undefined ? "[egress] of the policy" : "the option egress"}, or set network to "allowlist:HOST,…"`,
    });
  if (!lists) return null;
  const configured = typeof configuredEgress === "function" ? await configuredEgress() : configuredEgress;
  const written = [egress, configured, ofPolicy].filter((one) => one !== undefined);
  if (written.length === 0) return null;
  if (ofPolicy !== undefined) {
    const { checkPolicyEgress } = await import("../network/egress/policy-egress.js");
    await checkPolicyEgress({ ...loaded, egress: ofPolicy }, { others: [egress, configured], environment });
  }
  const { readEgress } = await import("../network/egress/read-egress.js");
  return await readEgress(written, environment);
}

/**
 * Checks everything that can be checked without an engine, with the errors of `Sandbox.create`, so that
 * nobody waits or pays for what could not succeed. Returns the settings with the workspace's real path.
 */
export async function checkedSettings(settings: SandboxSettings): Promise<SandboxSettings> {
  const { environment } = settings;
  const roots = await checkRoots({
    ...settings,
    endpoint: environment.dockerHost ?? "unix:///var/run/docker.sock",
    engine: { dockerRootDir: "" },
    host: hostDirectories(environment),
  });
  const workspace = roots.find(({ kind }) => kind === "workspace")?.directory.path ?? null;
  return { ...settings, workspace };
}

/**
 * The settings of a second sandbox on the same directories that may do everything but write to the names that
 * the first one protects. It never outlives its session, not even with `keep`.
 */
export async function withFullAccess(settings: SandboxSettings): Promise<SandboxSettings> {
  return { ...settings, policy: await loadFullAccess({ protectsLike: settings.policy }), keep: false };
}

/** The settings of a second sandbox that sees the same workspace in the mode read-only. It never outlives its session, not even with `keep`. */
export async function withReadOnly(settings: SandboxSettings): Promise<SandboxSettings> {
  const policy = await loadChosenPolicy({ mode: "read-only", user: settings.user });
  return { ...settings, policy, addDirs: [], keep: false };
}

/**
 * Keeps the files of a copy-on-write workspace, even while no sandbox with these settings is open. Call the
 * returned function when they are no longer needed. Returns undefined for any other workspace.
 */
export function holdTree({ overlay }: SandboxSettings): (() => Promise<void>) | undefined {
  overlay?.hold();
  return overlay && (() => overlay.release());
}

/** The directories of the host that no sandbox may be given, besides those of every machine. */
export function hostDirectories({ home, brigHome, codexHome, variables }: Environment): HostDirectories {
  const gitConfig = userGitConfig(variables, home);
  return { homeDirectory: home, gitConfig, configDirectories: [brigHome, codexHome] };
}

/** The description of a sandbox with these settings that `brig ps` shows. */
export function aboutSandbox(
  { policy: { name, policy }, image }: SandboxSettings,
  { workspace, labels }: Pick<SandboxPlan, "workspace" | "labels">,
): SandboxAbout {
  const createdAt = labels[LABELS.created] ?? "";
  return { mode: name, network: describeNetwork(policy.network), image, workspace, createdAt };
}

/** Error: `usage.invalid` for an unknown kind, which only a caller without types can pass. */
function isOverlay({ workspaceKind = "bind", workspace }: UnresolvedSettings): boolean {
  if (!WORKSPACE_KINDS.includes(workspaceKind))
    throw new BrigError(`${JSON.stringify(workspaceKind)} is not a kind of workspace`, {
      code: "usage.invalid",
      hint: `use one of ${WORKSPACE_KINDS.join(", ")}`,
    });
  return workspaceKind === "overlay" && workspace !== null;
}

/**
 * Error: `usage.invalid` without a workspace, or for an unknown value, which only a caller without types can
 * pass.
 */
function hasBranch({ git = "protected", workspace }: UnresolvedSettings): boolean {
  if (!GIT_ACCESSES.includes(git))
    throw new BrigError(`${JSON.stringify(git)} is not a way to use git`, {
      code: "usage.invalid",
      hint: `use one of ${GIT_ACCESSES.join(", ")}`,
    });
  if (git === "branch" && workspace === null)
    throw new BrigError("without a workspace there is no repository for a branch", {
      code: "usage.invalid",
      hint: "leave out --git branch or --workspace none",
    });
  return git === "branch";
}

/** Loaded only where there is a branch: the code reads repositories, and runs git in a sandbox. */
async function sessionBranch(
  { environment, addDirs = [], writableRoots = [] }: UnresolvedSettings,
  { hasOwnTree }: { hasOwnTree: boolean },
): Promise<SessionBranch> {
  const { SessionBranch: Branch } = await import("../branch/session-branch.js");
  const { brigHome, variables } = environment;
  const searchPath = variables.PATH ?? "/usr/local/bin:/usr/bin:/bin";
  return new Branch({ brigHome, searchPath, writable: [...addDirs, ...writableRoots], hasOwnTree });
}

/** Error: `usage.invalid`. */
function checkedGpus(gpus: string | undefined): number | undefined {
  if (gpus === undefined) return undefined;
  if (gpus === "all") return -1;
  if (/^[1-9][0-9]{0,2}$/.test(gpus)) return Number(gpus);
  throw new BrigError(`${JSON.stringify(gpus)} is not a number of graphics processors`, {
    code: "usage.invalid",
    hint: "use all, or a number such as 1",
  });
}

function checkedLease(leaseSeconds = DEFAULT_LEASE_SECONDS): number {
  if (Number.isFinite(leaseSeconds) && leaseSeconds >= 1 && leaseSeconds <= MAX_LEASE_SECONDS)
    return Math.round(leaseSeconds);
  throw new BrigError(`a lease of ${leaseSeconds} seconds is not possible`, {
    code: "usage.invalid",
    hint: `leaseSeconds must be between 1 and ${MAX_LEASE_SECONDS}; keep: true turns the lease off`,
  });
}
