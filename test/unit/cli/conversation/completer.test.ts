import { expect, it, onTestFinished } from "vitest";
import { Completer } from "../../../../src/cli/conversation/completer.js";
import type { Offer } from "../../../../src/cli/conversation/input/menu.js";
import type { ArgumentChoice, SlashCommand } from "../../../../src/cli/conversation/input/slash-commands.js";
import { BrigError } from "../../../../src/errors.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

/** Completes in a directory that cannot be listed. */
function open() {
  const setting = { cwd: "/nothing/there" };
  const session = { conversation: { sandbox: Promise.resolve(new MemorySandbox()), setting }, setup: {} };
  const completer = new Completer(session as unknown as ConstructorParameters<typeof Completer>[0]);
  onTestFinished(() => completer[Symbol.dispose]());
  const offers: Offer[] = [];
  const labels = () => offers.map(({ choices }) => choices.map(({ label }) => label));
  return { completer, offers, labels, show: (offer: Offer) => void offers.push(offer) };
}

function argumentOf(completions: SlashCommand["completions"]) {
  const command: SlashCommand = { name: "mode", summary: "", waitsForTurn: true, completions };
  return (typed: string) => ({ kind: "argument" as const, from: 6, to: 6 + typed.length, typed, command });
}

it("asks a command once for its arguments, until a turn may have changed them", async () => {
  const { completer, labels, show } = open();
  const lists: ArgumentChoice[][] = [[{ value: "one" }, { value: "two" }], [{ value: "three" }]];
  const word = argumentOf(() => Promise.resolve(lists.shift() ?? []));
  completer.complete(word(""), show);
  expect(labels()).toEqual([]);
  await expect.poll(labels).toEqual([["one", "two"]]);
  completer.complete(word("t"), show);
  expect(labels().at(-1)).toEqual(["two"]);
  completer.refresh();
  completer.complete(word("t"), show);
  await expect.poll(() => labels().at(-1)).toEqual(["three"]);
});

it("says why there is nothing to choose from, and asks again", async () => {
  const { completer, offers, show } = open();
  let isBroken = true;
  const word = argumentOf(() => {
    const failed = new BrigError("the list\x1b[2J is away", { code: "model.failed" });
    return isBroken ? Promise.reject(failed) : Promise.resolve([{ value: "one" }]);
  });
  completer.complete(word(""), show);
  await expect.poll(() => offers).toEqual([{ choices: [], note: "the list is away" }]);
  isBroken = false;
  completer.complete(word(""), show);
  await expect.poll(() => offers.at(-1)?.choices.length).toBe(1);
});

it("says why files cannot be listed", async () => {
  const { completer, offers, show } = open();
  completer.complete({ kind: "file", from: 0, to: 2, typed: "a" }, show);
  expect(offers).toEqual([{ choices: [], note: "listing the files of the workspace …" }]);
  await expect.poll(() => offers.at(-1)?.note).toMatch(/^the files cannot be listed: .*rg/);
});
