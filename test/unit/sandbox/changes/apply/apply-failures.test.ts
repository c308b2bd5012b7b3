import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import { undoInNew, undoLeftApplies } from "../../../../../src/sandbox/changes/apply-records.js";
import { FrameType } from "../../../../../src/sandbox/channel/protocol.js";
import type { PlayedRequest } from "../../channel/played-files.js";
import { added, type PlayedTree, playedTree } from "../../overlay/played-tree.js";
import { applyOf, newHome, notesIn, treeWith } from "./apply-of.js";
import { recordOfKilled } from "./killed-apply.js";

describe("an apply that fails", () => {
  const failing = (operation: PlayedRequest["operation"], errno = 28) => {
    return (request: PlayedRequest) => (request.operation === operation ? { errno } : null);
  };

  async function failed(answer: PlayedTree["answer"]) {
    const tree = await treeWith([added("a", { size: 1n })]);
    tree.contents.set("/merged/a", "x");
    tree.answer = answer;
    const brigHome = newHome();
    const error = await applyOf(tree, { brigHome }).catch((one: unknown) => one);
    return { error, tree, notes: notesIn(brigHome), last: tree.done().slice(-2) };
  }

  it.each(["mkdir", "write", "read", "commit"] as const)(
    "at its %s removes its stage and its note",
    async (operation) => {
      const { error, tree, last, ...rest } = await failed(failing(operation));
      expect(error).toMatchObject({ code: "file.failed", errno: "ENOSPC" });
      expect(last.at(-1)).toBe("recover /base");
      expect(rest.notes).toEqual([]);
      expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
    },
  );

  it("and cannot be undone keeps its note", async () => {
    const both = (request: PlayedRequest) => failing("recover", 13)(request) ?? failing("mkdir")(request);
    const { error, tree, ...rest } = await failed(both);
    expect(error).toMatchObject({ code: "file.not-permitted" });
    expect(rest.notes).toHaveLength(1);
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
  });

  it("and cannot be undone after the commit keeps its note", async () => {
    const both = (request: PlayedRequest) => failing("recover", 13)(request) ?? failing("commit")(request);
    const { error, ...rest } = await failed(both);
    expect(error).toMatchObject({ code: "file.not-permitted" });
    expect(rest.notes).toHaveLength(1);
  });

  it("because its container died is undone in another one", async () => {
    const [tree, other] = [await treeWith([added("d", { type: 2 })]), await playedTree()];
    const gone = new BrigError("killed", { code: "sandbox.gone", reason: "killed" });
    const first = await playedTree();
    const opened: string[] = [];
    first.answer = ({ operation }) => {
      if (operation !== "commit") return null;
      first.context.link.close(gone);
      return {};
    };
    const containers = [first, other];
    tree.openApplier = async () => {
      const container = containers[opened.length];
      opened.push("opened");
      if (container === undefined) throw new Error("too many");
      return { context: container.context, close: async () => void opened.push("closed") };
    };
    const brigHome = newHome();
    await expect(applyOf(tree, { brigHome })).rejects.toBe(gone);
    expect(other.done()).toEqual(["recover /base"]);
    expect(opened).toEqual(["opened", "opened", "closed", "closed"]);
    expect(notesIn(brigHome)).toEqual([]);
    // It is the stage of the commit that died.
    const stageOf = (one: PlayedTree, operation: string) =>
      one.files.requests.find((request) => request.operation === operation)?.second.toString("latin1");
    expect(stageOf(other, "recover")).toBe(stageOf(first, "commit"));
  });

  it("says so to nobody but its caller", async () => {
    const tree = await treeWith([added("d", { type: 2 })]);
    tree.answer = failing("commit");
    const onApplied = async () => {
      throw new Error("nothing was applied");
    };
    await expect(applyOf(tree, {}, { onApplied })).rejects.toMatchObject({ errno: "ENOSPC" });
    expect(tree.done().filter((one) => one.startsWith("changes"))).toHaveLength(1);
  });

  it("stops with its signal before the commit", async () => {
    const abort = new AbortController();
    const tree = await treeWith([added("d", { type: 2 })]);
    tree.answer = ({ operation }) => {
      if (operation === "mkdir") abort.abort(new Error("stop"));
      return null;
    };
    await expect(applyOf(tree, { signal: abort.signal })).rejects.toThrow("stop");
    expect(tree.done()).toEqual(["changes /merged", "mkdir /base/STAGE", "recover /base"]);
    const before = AbortSignal.abort(new Error("stop"));
    await expect(applyOf(await treeWith([]), { signal: before })).rejects.toThrow("stop");
  });
});

describe("an apply that was cut off", () => {
  it("is undone by the next one of the same workspace", async () => {
    const brigHome = newHome();
    const here = await recordOfKilled(brigHome, {
      workspace: "/repo",
      stage: ".brig-stage-aa",
      key: "ab".repeat(32),
    });
    const elsewhere = await recordOfKilled(brigHome, { workspace: "/other", stage: ".brig-stage-bb" });
    const tree = await treeWith([added("d", { type: 2 })]);
    await applyOf(tree, { brigHome });
    const [recovered, ...others] = tree.files.requests.filter(({ operation }) => operation === "recover");
    expect(recovered?.second).toEqual(Buffer.concat([Buffer.alloc(32, 0xab), Buffer.from(".brig-stage-aa")]));
    expect(others).toEqual([]);
    expect(tree.done().slice(0, 3)).toEqual(["changes /merged", "recover /base", "mkdir /base/STAGE"]);
    expect(notesIn(brigHome)).toEqual([elsewhere]);
    expect(notesIn(brigHome)).not.toContain(here);
  });

  it("keeps its note, and the next one from beginning, if it cannot be undone", async () => {
    const brigHome = newHome();
    const note = await recordOfKilled(brigHome, { workspace: "/repo" });
    const tree = await treeWith([added("d", { type: 2 })]);
    tree.answer = ({ operation }) => (operation === "recover" ? { errno: 74 } : null);
    await expect(applyOf(tree, { brigHome })).rejects.toMatchObject({ errno: "EBADMSG" });
    expect(notesIn(brigHome)).toEqual([note]);
    expect(tree.done()).toEqual(["changes /merged", "recover /base"]);
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
  });

  it("is undone in a container of its own, which is closed", async () => {
    const tree = await playedTree();
    const stage = { name: ".brig-stage-1", key: Buffer.alloc(32) };
    const left = [{ stage, forget: () => undefined }];
    await undoInNew(tree, left);
    expect(tree.done()).toEqual(["recover /base"]);
    tree.answer = () => ({ errno: 5 });
    await expect(undoInNew(tree, left)).rejects.toMatchObject({ errno: "EIO" });
    expect(tree.appliers).toEqual({ opened: 2, closed: 2 });
    expect(tree.files.runner.frames.every(({ type }) => type !== FrameType.kill)).toBe(true);
  });
});

describe("an apply whose process was killed", () => {
  it("is undone by the next start on the same workspace, and by no other", async () => {
    const [tree, brigHome] = [await playedTree(), newHome()];
    await recordOfKilled(brigHome);
    const other = await recordOfKilled(brigHome, { workspace: "/elsewhere" });
    await undoLeftApplies(tree, brigHome);
    expect(tree.done()).toEqual(["recover /base"]);
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
    expect(notesIn(brigHome)).toEqual([other]);
    await undoLeftApplies(tree, brigHome);
    expect(tree.appliers.opened).toBe(1);
  });

  it("keeps its note if it cannot be undone", async () => {
    const [tree, brigHome] = [await playedTree(), newHome()];
    await recordOfKilled(brigHome);
    tree.answer = ({ operation }) => (operation === "recover" ? { errno: 13 } : null);
    await expect(undoLeftApplies(tree, brigHome)).rejects.toMatchObject({ code: "file.not-permitted" });
    expect(tree.appliers).toEqual({ opened: 1, closed: 1 });
    expect(notesIn(brigHome)).toHaveLength(1);
  });
});
