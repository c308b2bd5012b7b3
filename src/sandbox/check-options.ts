import { currentDirectory } from "../config/current-directory.js";
import { readEnvironment } from "../config/env.js";
import type { LoadedPolicy } from "../policy/policy.js";
import { checkedLease, loadChosenPolicy } from "./plan/chosen-policy.js";
import { checkRoots, refuseUnenforceable } from "./plan/plan-sandbox.js";
import type { SandboxOptions } from "./sandbox-options.js";

/**
 * Judges everything about a sandbox that can be judged without its engine, with the errors of `Sandbox.create`, so that nobody waits or
 * pays for what could not succeed. Resolves to the policy that it would have.
 */
export async function checkSandboxOptions(options: SandboxOptions): Promise<LoadedPolicy> {
  const environment = options.environment ?? readEnvironment();
  checkedLease(options.leaseSeconds);
  const policy = await loadChosenPolicy(options);
  refuseUnenforceable(policy);
  await checkRoots({
    policy,
    workspace: options.workspace ?? currentDirectory(process),
    workspaceKind: options.workspaceKind ?? "bind",
    addDirs: options.addDirs ?? [],
    writableRoots: options.writableRoots ?? [],
    endpoint: environment.dockerHost ?? "unix:///var/run/docker.sock",
    engine: { dockerRootDir: "" },
    host: {
      homeDirectory: environment.home,
      ownDirectories: [environment.brigHome, environment.codexHome],
    },
  });
  return policy;
}
