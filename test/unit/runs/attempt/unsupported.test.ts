import { describe, expect, it } from "vitest";
import { ownAddresses } from "../../../../src/egress/dial.js";
import { refuseUnsupported } from "../../../../src/runs/attempt/unsupported.js";
import { networkScope } from "../../../../src/runs/place/network-scope.js";
import type { Task, TaskNetwork } from "../../../../src/tasks/task.js";
import { gradableTask } from "../../../support/played-runs.js";

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
    for (const address of ownAddresses())
      expect(() => refuseUnsupported(taskWith(allowing(address)))).toThrow(/is this machine/);
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
