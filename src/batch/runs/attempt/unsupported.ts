import { BrigError } from "../../../errors.js";
import type { HostPattern } from "../../../sandbox/index.js";
import { HOST_NAME, ownAddresses, patternsOf, scopeOf } from "../../../sandbox/index.js";
import type { Task, TaskNetwork } from "../../tasks/task.js";
import { agentNetworks, type MixedNetworks, taskPattern, verifierNetworks } from "../place/task-sandbox.js";

/** Error: `usage.invalid` for what a task asks for and an attempt cannot give, before anything runs. */
export function refuseUnsupported(task: Task): void {
  for (const reason of unsupported(task))
    throw new BrigError(`the task ${task.name} cannot be run: ${reason.what}`, {
      code: "usage.invalid",
      hint: reason.hint,
    });
}

interface Unsupported {
  what: string;
  hint: string;
}

function* unsupported(task: Task): Iterable<Unsupported> {
  for (const network of networksOf(task)) yield* unsupportedHosts(network);
  yield* mixedNetworks("the agent's container", agentNetworks(task).mixed);
  for (const step of task.steps)
    if (step.verifier.mode === "separate")
      yield* mixedNetworks("the container of the tests", verifierNetworks(task, step).mixed);
}

function* mixedNetworks(where: string, mixed: MixedNetworks | null): Iterable<Unsupported> {
  if (mixed === null) return;
  yield {
    what: `in ${where}, one phase has the network "${mixed.wide}" and another "${mixed.narrow}", which no container can switch between`,
    hint: 'give every phase that runs there "no-network" or "allowlist", or all of them the same; with environment_mode = "separate", tests have a container of their own',
  };
}

function networksOf({ environment, steps }: Task): TaskNetwork[] {
  const ofSteps = steps.flatMap(({ agent, verifier }) => [
    ...[agent.network, verifier.network, verifier.environment?.network ?? null],
  ]);
  return [environment.network, ...ofSteps].filter((network) => network !== null);
}

/**
 * A task comes from somebody else, and must not choose to reach the programs that run on this machine or the
 * credentials of its cloud.
 */
function* unsupportedHosts({ allowedHosts }: TaskNetwork): Iterable<Unsupported> {
  const own = ownAddresses();
  for (const host of allowedHosts) {
    const spelled = taskPattern(host);
    if (host !== HOST_NAME && spelled.kind === "refused")
      yield { what: `of its allowed hosts, ${spelled.reason}`, hint: "correct allowed_hosts of the task" };
    const isOfMachine =
      host === HOST_NAME ||
      (spelled.kind === "parsed" && patternsOf(spelled.text).some((pattern) => reachesMachine(pattern, own)));
    if (isOfMachine)
      yield {
        what: `its allowed hosts include "${host}", which is this machine or where its cloud keeps credentials`,
        hint: "remove it from allowed_hosts; only you can allow such an address, with --network for a command of your own",
      };
  }
}

/** A range is no danger: for addresses of this machine and of its cloud only a rule with just that address counts. */
function reachesMachine(pattern: HostPattern, own: readonly string[]): boolean {
  if (pattern.kind !== "range") return false;
  const { address } = pattern.range;
  const scope = scopeOf(address);
  return scope === "loopback" || scope === "metadata" || own.includes(address);
}
