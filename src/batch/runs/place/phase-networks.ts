import type { NetworkScope, Sandbox } from "../../../sandbox/index.js";
import { describeNetwork, PUBLIC } from "../../../sandbox/index.js";
import type { Task, TaskEnvironment, TaskNetwork, TaskStep } from "../../tasks/task.js";
import { networkScope } from "./network-scope.js";

const NOTHING: TaskNetwork = { mode: "allowlist", allowedHosts: [] };

/** Networks of the phases of one container. */
interface Phases {
  /** Null if nothing runs before the first of the others. */
  setup: TaskNetwork | null;
  /** Networks of agents, and of tests that run in the same container. */
  others: readonly TaskNetwork[];
}

/** A container that cannot be had, since one network interface would be there for all of its phases. */
export interface MixedNetworks {
  wide: TaskNetwork["mode"];
  narrow: TaskNetwork["mode"];
}

/**
 * The network of one container, which may be another one in each of its phases. A container whose phases differ has an
 * allow-list, with nothing on it until the first is entered.
 */
export class PhaseNetworks {
  /** Network that the container is opened with, and has whenever it is started again. */
  readonly opened: TaskNetwork;
  /** Null if `enter` can give each phase its network. */
  readonly mixed: MixedNetworks | null;
  readonly #changes: boolean;

  constructor({ setup, others }: Phases) {
    const all = setup === null ? others : [setup, ...others];
    const [first = NOTHING] = all;
    this.#changes = all.some((network) => !isSame(network, first));
    this.opened = this.#changes ? NOTHING : first;
    const wide = this.#changes && others.some(({ mode }) => mode === "public");
    const narrow = all.find(({ mode }) => mode !== "public");
    this.mixed = wide && narrow !== undefined ? { wide: "public", narrow: narrow.mode } : null;
  }

  /** Gives what runs in the container the network of a phase, and cuts connections that it does not allow. */
  enter(sandbox: Sandbox, network: TaskNetwork): void {
    if (this.#changes) sandbox.setNetwork(describeNetwork(listed(network)));
  }
}

/** Networks of the container that the agent works in. */
export function agentNetworks(task: Task): PhaseNetworks {
  const { environment, steps } = task;
  const tests = steps
    .filter(({ verifier }) => verifier.mode === "shared")
    .map((step) => testsNetwork(task, step));
  return new PhaseNetworks({
    setup: steps.some((step) => hasSetup(task, step)) ? environment.network : null,
    others: [...steps.map((step) => agentNetwork(task, step)), ...tests],
  });
}

/** Networks of the container of a separate verifier. */
export function verifierNetworks(task: Task, step: TaskStep): PhaseNetworks {
  const environment = verifierEnvironment(task, step);
  return new PhaseNetworks({
    setup: environment.healthcheck === null ? null : environment.network,
    others: [testsNetwork(task, step)],
  });
}

/** The networks of a fresh container, prepared like the agent's, in which the tests of a step run once more. */
export function confirmationNetworks(task: Task, step: TaskStep): PhaseNetworks {
  const { environment, steps } = task;
  const later = steps.slice(1, steps.indexOf(step) + 1).filter(runsPrograms);
  return new PhaseNetworks({
    setup: steps.some((one) => hasSetup(task, one)) ? environment.network : null,
    others: [...later.map((one) => setupNetwork(task, one)), testsNetwork(task, step)],
  });
}

export function agentNetwork({ environment }: Task, { agent }: TaskStep): TaskNetwork {
  return agent.network ?? environment.network;
}

/**
 * Network while a step is set up. From the second step on it is no wider than the agent's, since the setup may start
 * programs that an agent has put into the container.
 */
export function setupNetwork(task: Task, step: TaskStep): TaskNetwork {
  return step === task.steps[0] ? task.environment.network : agentNetwork(task, step);
}

export function testsNetwork(task: Task, step: TaskStep): TaskNetwork {
  return step.verifier.network ?? verifierEnvironment(task, step).network;
}

export function verifierEnvironment({ environment }: Task, { verifier }: TaskStep): TaskEnvironment {
  return verifier.environment ?? environment;
}

/** Whether programs run before the agent of the first step. */
function hasSetup({ environment, steps }: Task, step: TaskStep): boolean {
  if (step !== steps[0]) return false;
  return environment.healthcheck !== null || runsPrograms(step);
}

/** Whether it runs any before the agent. */
function runsPrograms({ healthcheck, setupScript }: TaskStep): boolean {
  return healthcheck !== null || setupScript !== null;
}

/** A container whose network changes has no interface, so a public network is the public hosts that the proxy reaches. */
function listed(network: TaskNetwork): NetworkScope {
  const scope = networkScope(network);
  return scope.kind === "full" ? { kind: "allowlist", hosts: [PUBLIC] } : scope;
}

function isSame(one: TaskNetwork, other: TaskNetwork): boolean {
  const hosts = ({ allowedHosts }: TaskNetwork) => allowedHosts.toSorted().join();
  return one.mode === other.mode && hosts(one) === hosts(other);
}
