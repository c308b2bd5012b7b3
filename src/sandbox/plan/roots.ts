import { BrigError } from "../../errors.js";
import type { EngineInfo } from "../docker/engine-types.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import type { Root } from "./protected-paths.js";
import { checkDirectory, type HostDirectories } from "./workspace.js";

export interface RootsRequest
  extends Pick<SandboxSettings, "policy" | "workspace" | "addDirs" | "writableRoots"> {
  /** Undefined unless the workspace is copy-on-write. */
  overlay?: object | undefined;
  engine: Pick<EngineInfo, "dockerRootDir">;
  /** E.g. `unix:///var/run/docker.sock`. */
  endpoint: string;
  host: HostDirectories;
}

/** Checks the directories that the sandbox will see. Errors: `workspace.invalid`, `usage.invalid`. */
export async function checkRoots(request: RootsRequest): Promise<Root[]> {
  const { policy, name } = request.policy;
  if (request.addDirs.length > 0 && !policy.overrides.writableRoots)
    throw new BrigError(`the policy ${name} takes no further writable directories`, {
      code: "usage.invalid",
      hint: "leave out --add-dir, or use --sandbox workspace-write",
    });
  const roots: Root[] = [];
  const add = async (kind: Root["kind"], access: Root["access"], path: string) => {
    const directory = await checkDirectory(path, {
      purpose: kind === "workspace" ? "workspace" : "writable directory",
      endpoint: request.endpoint,
      dockerRootDir: request.engine.dockerRootDir,
      host: request.host,
    });
    if (!roots.some((root) => root.directory.path === directory.path))
      roots.push({ kind, access, directory });
  };
  if (request.workspace !== null) await add("workspace", policy.workspace.access, request.workspace);
  const extra = policy.overrides.writableRoots ? [...request.addDirs, ...request.writableRoots] : [];
  for (const path of extra) await add("writable-root", "rw", path);
  const workspace = roots.find(({ kind }) => kind === "workspace");
  if (request.overlay && workspace) requireOverlayPath(workspace.directory.path);
  return roots;
}

/** Error: `workspace.invalid` for characters that separate the kernel's mount options. */
function requireOverlayPath(workspace: string): void {
  const found = /[,:\\]/.exec(workspace)?.[0];
  if (found === undefined) return;
  throw new BrigError(
    `the workspace ${JSON.stringify(workspace)} cannot be copy-on-write: its path contains ${JSON.stringify(found)}, ` +
      "which separates the options of an overlay mount",
    { code: "workspace.invalid", hint: "rename the directory, or use --workspace bind" },
  );
}
