import type { Environment } from "../../config/env.js";
import { BrigError } from "../../errors.js";
import { DEFAULT_IMAGE } from "../plan/missing-image.js";
import { checkRoots, refuseUnenforceable } from "../plan/plan-sandbox.js";
import type { HostDirectories } from "../plan/workspace.js";
import type { SandboxOptions } from "../sandbox-options.js";
import { loadChosenPolicy, loadFullAccess, type PolicyChoice } from "./chosen-policy.js";
import type { SandboxSettings } from "./sandbox-settings.js";

/** Options without the defaults. Unlike those of `SandboxOptions`, they name the workspace and the environment. */
export interface UnresolvedSettings
  extends PolicyChoice,
    Pick<
      SandboxOptions,
      "image" | "runtime" | "addDirs" | "writableRoots" | "leaseSeconds" | "keep" | "env"
    > {
  workspace: string | null;
  environment: Environment;
}

const DEFAULT_LEASE_SECONDS = 60;
const MAX_LEASE_SECONDS = 7 * 24 * 3600;

/** Errors: `policy.invalid`, `usage.invalid`. */
export async function resolveSettings(source: UnresolvedSettings): Promise<SandboxSettings> {
  const leaseSeconds = checkedLease(source.leaseSeconds);
  return {
    policy: await loadChosenPolicy(source),
    workspace: source.workspace,
    image: source.image ?? DEFAULT_IMAGE,
    runtime: source.runtime,
    addDirs: source.addDirs ?? [],
    writableRoots: source.writableRoots ?? [],
    env: source.env ?? {},
    leaseSeconds,
    keep: source.keep ?? false,
    environment: source.environment,
  };
}

/**
 * Checks everything that can be checked without an engine, with the errors of `Sandbox.create`, so that
 * nobody waits or pays for what could not succeed. Returns the settings with the workspace's real path.
 */
export async function checkedSettings(settings: SandboxSettings): Promise<SandboxSettings> {
  const { policy, environment } = settings;
  refuseUnenforceable(policy);
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

/** The directories of the host that no sandbox may be given, besides those of every machine. */
export function hostDirectories({ home, brigHome, codexHome }: Environment): HostDirectories {
  return { homeDirectory: home, configDirectories: [brigHome, codexHome] };
}

function checkedLease(leaseSeconds = DEFAULT_LEASE_SECONDS): number {
  if (Number.isFinite(leaseSeconds) && leaseSeconds >= 1 && leaseSeconds <= MAX_LEASE_SECONDS)
    return Math.round(leaseSeconds);
  throw new BrigError(`a lease of ${leaseSeconds} seconds is not possible`, {
    code: "usage.invalid",
    hint: `leaseSeconds must be between 1 and ${MAX_LEASE_SECONDS}; keep: true turns the lease off`,
  });
}
