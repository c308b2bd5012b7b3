import { aboutOf, type Sandbox, secretsOf, settingsOf } from "../../../sandbox/index.js";
import type { RemoteSandboxRecord } from "../../serve/wire/schemas.js";
import type { SandboxPlaceAnswer } from "../wire/messages.js";

/** What a client needs to know before a model works in the sandbox. */
export function placeOf(
  sandbox: Sandbox,
  { record, egressCount }: { record: RemoteSandboxRecord; egressCount: number },
): SandboxPlaceAnswer {
  const { policy, addDirs, writableRoots } = settingsOf(sandbox);
  const { image, workspace } = aboutOf(sandbox);
  const { id, network, workingDirectory } = record;
  return {
    ...{ id, image, network, workspace, workingDirectory },
    ...{ mode: policy.name, policyFile: policy.file },
    writableRoots: [...addDirs, ...(policy.policy.overrides.writableRoots ? writableRoots : [])],
    ...{ snapshotId: sandbox.snapshotId, proof: sandbox.proof },
    ...{ secrets: secretsOf(sandbox), egressCount },
  };
}
