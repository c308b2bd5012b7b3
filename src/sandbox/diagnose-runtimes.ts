import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isBrigError } from "../errors.js";
import type { Environment } from "../lib/env.js";
import { type Check, check } from "./docker/diagnosis/check.js";
import { appliesSeccomp, ignoresCgroups, sharesEngineKernel } from "./docker/diagnosis/gvisor.js";
import type { Engine, EngineRuntime } from "./docker/engine-types.js";
import { type OpenedSandbox, openSandbox } from "./open-sandbox.js";
import { resolveSettings } from "./settings/resolve-settings.js";

/** Engines have a handful of runtimes; this bounds the time if one lists thousands. */
const MAX_TRIED = 8;

const REPAIR_DEFAULT = "repair its program, or set another default-runtime in the engine's daemon.json";

interface StartOptions {
  environment: Environment;
}

/** Starts a sandbox on each uncommon runtime, and reports whether that works and what to improve. */
export async function diagnoseRuntimes(engine: Engine, options: StartOptions): Promise<Check[]> {
  const { runtimes, defaultRuntime } = await engine.info();
  const checks: Check[] = [];
  for (const runtime of runtimes.filter((one) => !sharesEngineKernel(one)).slice(0, MAX_TRIED))
    checks.push(await tryRuntime(engine, { runtime, isDefault: runtime.name === defaultRuntime, options }));
  return checks;
}

interface Trial {
  runtime: EngineRuntime;
  isDefault: boolean;
  options: StartOptions;
}

async function tryRuntime(engine: Engine, { runtime, isDefault, options }: Trial): Promise<Check> {
  const about = { id: `runtime-${runtime.name}`, title: `runtime ${runtime.name}` };
  let opened: OpenedSandbox;
  try {
    const settings = await resolveSettings({
      ...options,
      runtime: runtime.name,
      mode: "read-only",
      workspace: null,
    });
    opened = await openSandbox(settings, { engine });
  } catch (error) {
    if (!isBrigError(error)) throw error;
    const notBuilt = error.code === "image.missing";
    const found = `${runtime.program ?? "no program named"}: ${notBuilt ? "not tried, " : ""}${error.message}`;
    const status = isDefault && !notBuilt ? "fail" : "warn";
    return check(
      { ...about, found },
      { status, advice: error.hint ?? (isDefault ? REPAIR_DEFAULT : "leave --runtime out") },
    );
  }
  await opened.release({ isEnding: false });
  if (opened.plan.kernel === "gvisor") return describeGvisor(about, runtime);
  return check({ ...about, found: `${runtime.program ?? "its program is not named"}; a sandbox starts` });
}

function describeGvisor(about: { id: string; title: string }, runtime: EngineRuntime): Check {
  const ignores = ignoresCgroups(runtime);
  const filters = appliesSeccomp(runtime);
  const found = [
    `gVisor (${runtime.program ?? "its program is not named"})`,
    "a sandbox starts",
    `${filters ? "with" : "without"} the system call filter`,
    ...(ignores === null ? [] : [`${ignores ? "without" : "with"} limits`]),
  ].join(", ");
  const advice = [
    ...(filters ? [] : ["add --oci-seccomp"]),
    ...(ignores === true ? ["leave out --ignore-cgroups"] : []),
  ];
  return check(
    { ...about, found },
    advice.length === 0
      ? undefined
      : {
          status: "warn",
          advice: `${advice.join(" and ")} in this runtime's runtimeArgs (daemon.json), if it starts that way`,
        },
  );
}

const about = { id: "overlay", title: "copy-on-write workspaces" };

/** Starts a sandbox with an empty copy-on-write workspace, and reports whether that works. */
export async function diagnoseOverlay(
  engine: Engine,
  { environment }: { environment: Environment },
): Promise<Check[]> {
  const workspace = await realpath(await mkdtemp(join(tmpdir(), "brig-doctor-")));
  try {
    const settings = await resolveSettings({ workspace, workspaceKind: "overlay", environment });
    const opened = await openSandbox(settings, { engine });
    await opened.release({ isEnding: false });
    return [check({ ...about, found: "a sandbox starts with --workspace overlay" })];
  } catch (error) {
    if (!isBrigError(error)) throw error;
    const found = `${error.code === "image.missing" ? "not tried" : "not possible"}: ${error.message}`;
    return [check({ ...about, found }, { status: "warn", advice: error.hint ?? "use --workspace bind" })];
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}
