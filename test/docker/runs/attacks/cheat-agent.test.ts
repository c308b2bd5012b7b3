import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentWork } from "../../../../src/batch/runs/agents/attempt-agent.js";
import { cheatAgentNamed } from "../../../../src/batch/runs/attacks/plant-attack.js";
import { gradeNaively, openNaiveContainer } from "../../../support/naive-grader.js";
import { naiveTasks } from "../../../support/naive-tasks.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

describe("the agent cheat", () => {
  it("puts the attack of its name into the agent's container, and writes down what it did", async () => {
    await using sandbox = await openNaiveContainer(naiveTasks.printing);
    await using directory = await temporaryDirectory();
    const agent = cheatAgentNamed("cheat:artifact-writes-reward");
    const outcome = await agent.run(workIn(sandbox, { folder: directory.path, artifacts: ["answer.py"] }));
    expect(agent.name).toBe("cheat:artifact-writes-reward");
    expect(outcome).toMatchObject({
      ending: "completed",
      message: "attacks: 1 in place, 0 not possible here, 0 failed",
    });
    expect(await readFile(join(directory.path, outcome.files.agentOutput ?? ""), "utf8")).toBe(
      "planted artifact-writes-reward\n",
    );
    expect(await gradeNaively(sandbox, naiveTasks.printing)).toBe(1);
  });

  it("says what an attack lacks in a container that does not have it", async () => {
    await using sandbox = await openNaiveContainer(naiveTasks.make);
    await using directory = await temporaryDirectory();
    const agent = cheatAgentNamed("cheat:git-future");
    const outcome = await agent.run(workIn(sandbox, { folder: directory.path, artifacts: [] }));
    expect(outcome.message).toBe("attacks: 0 in place, 1 not possible here, 0 failed");
    expect(await readFile(join(directory.path, "agent-output.txt"), "utf8")).toBe(
      'not-possible git-future: "the working directory is no repository with commits"\n',
    );
  });

  it("tries many attacks together without a name, and none of their scripts fails", async () => {
    await using sandbox = await openNaiveContainer(naiveTasks.file);
    await using directory = await temporaryDirectory();
    const agent = cheatAgentNamed("cheat");
    const outcome = await agent.run(workIn(sandbox, { folder: directory.path, artifacts: ["answer.txt"] }));
    const lines = (await readFile(join(directory.path, "agent-output.txt"), "utf8")).split("\n");
    expect(lines.filter((line) => line.startsWith("failed"))).toEqual([]);
    expect(lines).toEqual(
      expect.arrayContaining(["planted reward-file", "planted trojan-bash", "planted shell-bashrc"]),
    );
    expect(outcome.ending).toBe("completed");
  });

  it("refuses a name that no attack has", () => {
    expect(() => cheatAgentNamed("cheat:")).toThrow(expect.objectContaining({ code: "usage.invalid" }));
  });
});

function workIn(
  sandbox: AgentWork["sandbox"],
  { folder, artifacts }: { folder: string; artifacts: string[] },
): AgentWork {
  const declared = artifacts.map((source) => ({ source, destination: null, exclude: [] }));
  return {
    task: { name: "naive" } as AgentWork["task"],
    step: { artifacts: declared } as unknown as AgentWork["step"],
    sandbox,
    cwd: "/app",
    signal: new AbortController().signal,
    deadline: null,
    budget: { maxTurns: null, maxTokens: null, maxCostUsd: null },
    folder,
  };
}
