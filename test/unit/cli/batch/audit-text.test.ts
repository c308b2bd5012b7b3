import { expect, it } from "vitest";
import { findAttack } from "../../../../src/batch/runs/attacks/attack-library.js";
import { isSound, type TaskAudit } from "../../../../src/batch/runs/audit-task.js";
import { auditAsJson, auditText } from "../../../../src/cli/batch/audit/audit-text.js";

const sound: TaskAudit = {
  task: "org/task",
  modes: ["separate"],
  nop: { agent: "nop", reward: 0, message: null, restsOn: [] },
  oracle: { agent: "oracle", reward: 1, message: null, restsOn: [] },
  attacks: [attackTrial("reward-file", 0), { ...attackTrial("git-future", null), outcome: "not-possible" }],
};

function attackTrial(name: string, reward: number | null): TaskAudit["attacks"][number] {
  const attack = findAttack(name);
  return { agent: `cheat:${name}`, attack, outcome: "planted", reward, message: null, restsOn: [] };
}

it("a sound task has one line", () => {
  expect(isSound(sound)).toBe(true);
  expect(auditText(sound)).toBe(
    "org/task: sound: nothing scores 0, the solution scores 1, 1 attack scores 0, 0 more than nothing, 1 not possible here\n",
  );
});

it("an attack succeeds if it gets more than doing nothing", () => {
  const nop = { agent: "nop", reward: 0.5, message: null, restsOn: [] };
  const outside = { ...attackTrial("trojan-curl", 0.75), restsOn: ["/usr/local/bin/curl\u001b[2J"] };
  const attacks = [attackTrial("reward-file", 0.5), outside];
  const audit = { ...sound, nop, attacks, modes: ["shared" as const] };
  expect(isSound(audit)).toBe(false);
  const text = auditText(audit);
  expect(text).toContain("doing nothing is rewarded");
  expect(text).toContain("\n  trojan-curl scores 0.75. Replaces curl");
  expect(text).not.toContain("\n  reward-file scores");
  expect(text).toContain("\n    Its score rests on /usr/local/bin/curl.\n");
  expect(text).not.toContain("\u001b");
  expect(text).toContain("(shared)");
  expect(auditAsJson([audit])).toMatchObject({
    sound: false,
    tasks: [
      {
        sound: false,
        verifier: ["shared"],
        attacks: [
          { name: "reward-file", reward: 0.5, succeeds: false, remedy: null },
          {
            name: "trojan-curl",
            reward: 0.75,
            succeeds: true,
            restsOn: outside.restsOn,
            remedy: findAttack("trojan-curl").remedy,
          },
        ],
      },
    ],
  });
});

it("what has no score is not sound, and what a container said is made harmless", () => {
  const oracle = { agent: "oracle", reward: null, message: "the task has no solution", restsOn: [] };
  expect(auditText({ ...sound, oracle })).toContain("the solution has no score: the task has no solution\n");
  const attacks = [{ ...attackTrial("reward-file", null), message: "\u001b[2Jgone\nmore" }];
  expect(isSound({ ...sound, attacks })).toBe(false);
  const text = auditText({ ...sound, attacks });
  expect(text).not.toContain("\u001b");
  expect(text).toMatch(/ {2}cheat:reward-file has no score: .*gone.*\n$/);
});
