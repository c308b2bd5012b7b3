import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { parseScript } from "../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../src/agent/model/script/scripted-client.js";
import type { AttemptAgent } from "../../../src/batch/runs/agents/attempt-agent.js";
import { commandAgent, oracleAgent } from "../../../src/batch/runs/agents/command-agent.js";
import { modelAgent } from "../../../src/batch/runs/agents/model-agent.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import type { Task, TaskHealthcheck, TaskNetwork } from "../../../src/batch/tasks/task.js";
import { readEnvironment } from "../../../src/lib/env.js";
import { phaseHosts } from "../../support/phase-hosts.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, stepOf, taskOf } from "../../support/task-attempts.js";

const allowing = (...allowedHosts: string[]): TaskNetwork => ({ mode: "allowlist", allowedHosts });
const phase = (network: TaskNetwork) => ({ timeoutSec: 60, user: null, network });
const PUBLIC: TaskNetwork = { mode: "public", allowedHosts: [] };
const NONE: TaskNetwork = { mode: "no-network", allowedHosts: [] };

type Hosts = Awaited<ReturnType<typeof phaseHosts>>;

function healthcheck(command: string): TaskHealthcheck {
  return { command, intervalSec: 1, timeoutSec: 30, startPeriodSec: 0, startIntervalSec: 1, retries: 2 };
}

/** Tries the host of each phase, with its own name in the path. */
const triesAll = ({ port }: Hosts, name: string, hosts = "setup agent tests") =>
  `for host in ${hosts}; do curl -s -o /dev/null -m 20 http://$host.example:${port}/${name}; done; true`;

const graded = (script: string) => `#!/bin/bash\n${script}\necho 1 > /logs/verifier/reward.txt\n`;

async function attempted(
  directory: string,
  { task, agent, hosts }: { task: Task; agent: AttemptAgent; hosts: Hosts },
) {
  const environment = {
    ...readEnvironment(),
    brigHome: join(directory, "home"),
    egressProxy: hosts.egressProxy,
  };
  const attempt = await attemptAt(directory, { task, agent, environment });
  const result = await runAttempt(attempt);
  const text = await readFile(join(attempt.folder, "egress.jsonl"), "utf8").catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "");
  const egress = lines.map((line) => JSON.parse(line) as { stage: string; host: string; outcome: string });
  const places = egress.map(({ stage, host, outcome }) => `${stage} ${host} ${outcome}`);
  return { result, attempt, places: [...new Set(places)].sort() };
}

/** Of one step, whose set-up, agent and tests have a host each. */
async function phasedTask(directory: string, hosts: Hosts, mode: "shared" | "separate"): Promise<Task> {
  return await taskOf(directory, {
    environment: {
      network: allowing("setup.example"),
      healthcheck: healthcheck(triesAll(hosts, "setup")),
    },
    step: { agent: phase(allowing("agent.example")) },
    verifier: { mode, network: allowing("tests.example") },
    testScript: graded(triesAll(hosts, "tests")),
  });
}

const agents: Record<string, (script: string) => AttemptAgent> = {
  command: commandAgent,
  oracle: () => oracleAgent(),
  model: (script) => {
    const calls = [{ shell_command: { command: script } }];
    const yaml = JSON.stringify({ steps: [{ calls }, { text: "done" }] });
    return modelAgent({
      name: "scripted",
      model: "scripted",
      openModel: async () => createScriptedClient(parseScript(yaml, "script.yaml")),
    });
  },
};

describe("the phases of a task in one container", () => {
  sandboxTest.for(Object.entries(agents))(
    "reach each its own hosts, with the agent %s",
    async ([, agentOf], { directory }) => {
      await using hosts = await phaseHosts();
      const task = await phasedTask(directory, hosts, "shared");
      const commands = [triesAll(hosts, "agent")];
      const steps = task.steps.map((step) => ({
        ...step,
        solution: { kind: "commands", commands } as const,
      }));
      const agent = agentOf(triesAll(hosts, "agent"));
      const { result, places } = await attempted(directory, { task: { ...task, steps }, agent, hosts });
      expect(result).toMatchObject({ status: "scored", reward: 1 });
      // A pass is graded again in a fresh container, which has the same set-up and the same tests.
      expect(hosts.seen).toEqual([
        ...["setup.example/setup", "agent.example/agent", "tests.example/tests"],
        ...["setup.example/setup", "tests.example/tests"],
      ]);
      expect(places.filter((place) => !place.startsWith("confirm"))).toEqual([
        ...["agent agent.example allowed", "agent setup.example denied", "agent tests.example denied"],
        ...["start agent.example denied", "start setup.example allowed", "start tests.example denied"],
        ...["verify agent.example denied", "verify setup.example denied", "verify tests.example allowed"],
      ]);
    },
  );

  sandboxTest("of several steps reach the hosts of their step", async ({ directory }) => {
    await using hosts = await phaseHosts();
    const all = "setup agent tests other";
    const files = join(directory, "files");
    await mkdir(files);
    await writeFile(join(files, "setup.sh"), triesAll(hosts, "setup", all));
    const step = async (name: string, agent: TaskNetwork, tests: TaskNetwork | null) =>
      await stepOf(directory, {
        step: { name, agent: phase(agent), files, setupScript: "setup.sh" },
        verifier: { mode: "shared", network: tests },
        testScript: graded(triesAll(hosts, `tests-${name}`, all)),
      });
    const task = await taskOf(directory, {
      environment: { network: allowing("setup.example") },
      steps: [
        await step("one", allowing("agent.example"), allowing("tests.example")),
        await step("two", allowing("other.example"), NONE),
      ],
    });
    const agent = shellAgent(triesAll(hosts, "agent", all));
    const { result, places } = await attempted(directory, { task, agent, hosts });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(hosts.seen).toEqual([
      ...["setup.example/setup", "agent.example/agent", "tests.example/tests-one"],
      // The pass of this step is graded again.
      ...["setup.example/setup", "tests.example/tests-one"],
      // What an agent has left in the container may run in the set-up of a later step.
      ...["other.example/setup", "other.example/agent"],
      // And that of this one, in a container that both steps have prepared.
      ...["setup.example/setup", "other.example/setup"],
    ]);
    expect(places.filter((place) => place.endsWith("allowed"))).toEqual([
      ...["agent agent.example allowed", "agent other.example allowed"],
      ...["other", "setup", "tests"].map((host) => `confirm ${host}.example allowed`),
      ...["start other.example allowed", "start setup.example allowed", "verify tests.example allowed"],
    ]);
  });

  sandboxTest("end with their connections", async ({ directory }) => {
    await using hosts = await phaseHosts();
    const hold = `(setsid curl -sN http://setup.example:${hosts.port}/hold > /tmp/held 2>&1 &)
      until grep -q holding /tmp/held; do sleep 0.05; done`;
    const task = await taskOf(directory, {
      environment: { network: allowing("setup.example"), healthcheck: healthcheck(hold) },
      step: { agent: phase(allowing("agent.example")) },
      verifier: { mode: "shared", network: NONE },
      testScript:
        '#!/bin/sh\n[ "$(cat /app/answer.txt)" = cut ]; echo $((1 - $?)) > /logs/verifier/reward.txt\n',
    });
    const agent = shellAgent(`curl -s http://agent.example:${hosts.port}/held > answer.txt`);
    const { result, places } = await attempted(directory, { task, agent, hosts });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    // It belongs to the phase in which it began.
    expect(places).toEqual([
      ...["agent agent.example allowed", "confirm setup.example denied", "start setup.example denied"],
    ]);
  });

  sandboxTest("let no process of the agent use the network of the tests", async ({ directory }) => {
    await using hosts = await phaseHosts();
    const dials = (path: string) => `curl -s -o /dev/null -m 5 http://tests.example:${hosts.port}/${path}`;
    const agent = shellAgent(`
      (setsid bash -c 'while :; do ${dials("agent")} & sleep 0.05; done' > /dev/null 2>&1 &)
      (setsid bash -c 'trap "" TERM HUP INT; while :; do ${dials("stubborn")} & sleep 0.05; done' > /dev/null 2>&1 &)
      sleep 0.5; echo done > answer.txt`);
    const task = await taskOf(directory, {
      environment: { network: NONE },
      verifier: { mode: "shared", network: allowing("tests.example") },
      testScript: graded(`${dials("tests")}; sleep 1; ${dials("tests")}`),
    });
    const { result, places } = await attempted(directory, { task, agent, hosts });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    // Twice in each of the two gradings.
    expect(hosts.seen).toEqual(Array(4).fill("tests.example/tests"));
    expect(places).toContain("agent tests.example denied");
    expect(places.filter((place) => place.startsWith("verify"))).toEqual(["verify tests.example allowed"]);
  });

  sandboxTest("do not have a public network that only the set-up has", async ({ directory }) => {
    await using hosts = await phaseHosts();
    const task = await taskOf(directory, {
      environment: { network: PUBLIC, healthcheck: healthcheck(triesAll(hosts, "setup")) },
      step: { agent: phase(NONE) },
      verifier: { mode: "shared", network: NONE },
      testScript: graded(triesAll(hosts, "tests")),
    });
    const agent = shellAgent(`${triesAll(hosts, "agent")}; ls /sys/class/net > answer.txt; true`);
    const { result } = await attempted(directory, { task, agent, hosts });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    const bySetup = ["setup", "agent", "tests"].map((name) => `${name}.example/setup`);
    expect(hosts.seen).toEqual([...bySetup, ...bySetup]);
  });
});

describe("the phases of a separate verifier", () => {
  sandboxTest("reach each its own hosts", async ({ directory }) => {
    await using hosts = await phaseHosts();
    const task = await phasedTask(directory, hosts, "separate");
    const agent = shellAgent(triesAll(hosts, "agent"));
    const { result, places } = await attempted(directory, { task, agent, hosts });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(hosts.seen).toEqual([
      ...["setup.example/setup", "agent.example/agent", "setup.example/setup", "tests.example/tests"],
    ]);
    expect(places.filter((place) => place.endsWith("allowed"))).toEqual([
      ...["agent agent.example allowed", "start setup.example allowed"],
      ...["verify setup.example allowed", "verify tests.example allowed"],
    ]);
  });
});
