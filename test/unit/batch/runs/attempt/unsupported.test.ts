import { describe, expect, it } from "vitest";
import { refuseUnsupported } from "../../../../../src/batch/runs/attempt/unsupported.js";
import { networkScope } from "../../../../../src/batch/runs/place/task-sandbox.js";
import type { Task, TaskNetwork } from "../../../../../src/batch/tasks/task.js";
import { ownAddresses } from "../../../../../src/sandbox/egress/dial.js";
import { gradableTask } from "../../../../support/played-runs.js";

const allowing = (...allowedHosts: string[]): TaskNetwork => ({ mode: "allowlist", allowedHosts });

/** A task that asks for the network in one of the places where a task can. */
const places: Record<string, (network: TaskNetwork) => Task> = {
  environment: (network) => {
    const task = gradableTask("asks");
    return { ...task, environment: { ...task.environment, network } };
  },
  agent: (network) => withStep((step) => ({ ...step, agent: { ...step.agent, network } })),
  verifier: (network) =>
    withStep((step) => ({ ...step, verifier: { ...step.verifier, mode: "separate", network } })),
  "verifier's environment": (network) =>
    withStep((step, { environment }) => ({
      ...step,
      verifier: { ...step.verifier, mode: "separate", environment: { ...environment, network } },
    })),
};

function withStep(change: (step: Task["steps"][number], task: Task) => Task["steps"][number]): Task {
  const task = gradableTask("asks");
  return { ...task, steps: task.steps.map((step) => change(step, task)) };
}

describe.each(Object.entries(places))("the allowed hosts of a task's %s", (_, taskWith) => {
  it.each([
    "host.internal",
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "::ffff:127.0.0.1",
    "169.254.169.254",
    "fd00:ec2::254",
  ])("may not name %s, which public network access does not give", (host) => {
    expect(() => refuseUnsupported(taskWith(allowing("pypi.org", host)))).toThrow(
      expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining(`"${host}"`) }),
    );
  });

  it("may not name an address of this machine", () => {
    const allowed = ownAddresses().filter((address) => {
      try {
        refuseUnsupported(taskWith(allowing(address)));
        return true;
      } catch (error) {
        expect(String(error)).toMatch(/is this machine/);
        return false;
      }
    });
    // A network of a container may have gone meanwhile, and its address with it.
    const still = ownAddresses();
    expect(still.length).toBeGreaterThan(0);
    expect(allowed.filter((address) => still.includes(address))).toEqual([]);
  });

  it("may not be spelled so that two programs read two hosts", () => {
    expect(() => refuseUnsupported(taskWith(allowing("0x7f.1")))).toThrow(/"0x7f\.1" is not a host name/);
  });

  it("may be names, suffixes, and addresses elsewhere", () => {
    refuseUnsupported(
      taskWith(allowing("pypi.org", "*.example.com", "192.0.2.1", "10.0.0.0/8", "2001:db8::1")),
    );
  });
});

describe("phases of one container", () => {
  const PUBLIC: TaskNetwork = { mode: "public", allowedHosts: [] };
  const NONE: TaskNetwork = { mode: "no-network", allowedHosts: [] };
  const healthcheck = {
    ...{ command: "true", intervalSec: 1, timeoutSec: 1, startPeriodSec: 0, startIntervalSec: 1, retries: 1 },
  };
  type Networks = { setup?: TaskNetwork; agents: TaskNetwork[]; tests: TaskNetwork };

  /** One step for each agent. */
  function phased({ setup, agents, tests }: Networks, mode: "shared" | "separate"): Task {
    const task = gradableTask("asks");
    const steps = agents.flatMap((network) =>
      task.steps.map((step) => ({
        ...step,
        agent: { ...step.agent, network },
        verifier: { ...step.verifier, mode, network: tests },
      })),
    );
    const environment = {
      ...task.environment,
      ...(setup !== undefined && { network: setup, healthcheck }),
    };
    return { ...task, environment, steps };
  }

  it.each<[string, Networks]>([
    ["an agent with the whole network and tests without", { agents: [PUBLIC], tests: NONE }],
    ["an agent without a network and tests with the whole", { agents: [NONE], tests: PUBLIC }],
    [
      "a step with a list after one with the whole network",
      { agents: [PUBLIC, allowing("a.example")], tests: PUBLIC },
    ],
    ["a set-up without what the agent has", { setup: NONE, agents: [PUBLIC], tests: PUBLIC }],
  ])("are refused if only one could have an interface: %s", (_, networks) => {
    expect(() => refuseUnsupported(phased(networks, "shared"))).toThrow(
      expect.objectContaining({
        code: "usage.invalid",
        message: expect.stringMatching(
          /the agent's container.*"public" and another "(no-network|allowlist)"/,
        ),
        hint: expect.stringContaining("separate"),
      }),
    );
  });

  it("are refused in the container of a separate verifier as well", () => {
    const networks = { setup: NONE, agents: [NONE], tests: PUBLIC };
    expect(() => refuseUnsupported(phased(networks, "separate"))).toThrow(/in the container of the tests,/);
  });

  it.each<[string, Networks, "shared" | "separate"]>([
    ["lists that differ", { agents: [allowing("a.example"), NONE], tests: allowing("b.example") }, "shared"],
    ["a public network of the set-up alone", { setup: PUBLIC, agents: [NONE], tests: NONE }, "shared"],
    ["a public network of all", { setup: PUBLIC, agents: [PUBLIC], tests: PUBLIC }, "shared"],
    ["tests in a container of their own", { agents: [PUBLIC], tests: NONE }, "separate"],
  ])("may have %s", (_, networks, mode) => {
    refuseUnsupported(phased(networks, mode));
  });
});

describe("a task's network for a policy", () => {
  it("has the normal spelling of each host", () => {
    expect(networkScope(allowing("PyPI.org", "2001:DB8:0::1"))).toEqual({
      kind: "allowlist",
      hosts: ["pypi.org", "[2001:db8::1]"],
    });
  });

  it("is refused for a host that is none, instead of leaving it out", () => {
    expect(() => networkScope(allowing("0x7f.1"))).toThrow(
      expect.objectContaining({ code: "usage.invalid" }),
    );
  });
});
