import { BrigError } from "../../errors.js";
import type { Task, TaskNetwork } from "../../tasks/task.js";

/** Error: `usage.invalid` for what a task asks for and an attempt cannot give, before anything runs. */
export function refuseUnsupported(task: Task): void {
  for (const reason of unsupported(task))
    throw new BrigError(`the task ${task.name} cannot be run: ${reason.what}`, {
      code: "usage.invalid",
      hint: reason.hint,
    });
}

function* unsupported(task: Task): Iterable<{ what: string; hint: string }> {
  for (const { agent, verifier } of task.steps) {
    const ofAgent = agent.network ?? task.environment.network;
    if (verifier.mode === "shared" && !isSame(verifier.network ?? task.environment.network, ofAgent))
      yield {
        what: "its tests run in the agent's container, but with another network than the agent",
        hint: 'give both the same network_mode and allowed_hosts, or set environment_mode = "separate" for the verifier',
      };
  }
}

function isSame(one: TaskNetwork, other: TaskNetwork): boolean {
  const hosts = ({ allowedHosts }: TaskNetwork) => allowedHosts.toSorted().join();
  return one.mode === other.mode && hosts(one) === hosts(other);
}
