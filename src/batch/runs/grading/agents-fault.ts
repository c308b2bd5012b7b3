import { type BrigError, isBrigError } from "../../../errors.js";
import type { Engine } from "../../../sandbox/index.js";
import { explainFailure } from "../evidence/explain-failure.js";
import type { Judged } from "./judge-tests.js";

interface JudgedContainer {
  engine: Engine;
  containerId: string;
  memoryLimitBytes: number;
  /** Whether the agent worked in it. Default: false. */
  isAgents?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Grades failures that an agent can cause, so that they do not keep its attempt from a grade: artifacts that cannot be
 * put into a container, tests that are left no memory; in its own container, a file system from which nothing starts.
 */
export async function asAgentsFault(
  judge: () => Promise<Judged>,
  { engine, signal, isAgents = false, ...container }: JudgedContainer,
): Promise<Judged> {
  try {
    return await judge();
  } catch (error) {
    if (!isBrigError(error) || signal?.aborted) throw error;
    const failed = { error, stage: "verify", ...container } as const;
    const endedItself = async () => (await explainFailure(engine, failed))?.kind !== "infrastructure";
    const isOwn =
      error.code === "sandbox.gone"
        ? await endedItself()
        : couldBeCaused(error) || (isAgents && error.code === "policy.not-enforced");
    if (!isOwn) throw error;
    const message = `the tests could not run on what the agent left: ${error.message}`;
    return { rewards: null, verifier: "no-reward", message, exitCode: null, tests: null, time: null };
  }
}

function couldBeCaused({ code, errno }: BrigError): boolean {
  if (code === "engine.failed") return errno !== "ENOSPC" && errno !== "EDQUOT";
  return code === "exec.bad-cwd" || code === "protocol.invalid" || code.startsWith("file.");
}
