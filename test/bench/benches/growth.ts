import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { readServerEvents } from "../../../src/agent/model/endpoint/server-events.js";
import { readSessionLines } from "../../../src/agent/session/read/session-lines.js";
import { stepsOf } from "../../../src/agent/session/read/session-steps.js";
import { normalised } from "../../../src/agent/turn/history.js";
import { layoutDraft } from "../../../src/cli/conversation/screen/text-layout.js";
import { breakBetweenWords, breakColumns } from "../../../src/lib/terminal/break-columns.js";
import { openModem } from "../../../src/sandbox/docker/modem.js";
import { openTransport } from "../../../src/sandbox/docker/transport.js";
import { recognisePatchScript } from "../../../src/tools/command/read-command.js";
import { applyChunks } from "../../../src/tools/patch/edit-text.js";
import type { PatchFiles } from "../../../src/tools/patch/patch-files.js";
import { parsePatch } from "../../../src/tools/patch/patch-format.js";
import { callOf, outputOf } from "../../support/histories.js";
import { textPatcher } from "../../support/text-patcher.js";
import { type Bench, type BenchContext, compare } from "../bench.js";
import { type Contender, repeat, takeTurns } from "../sampling.js";

/** Work that grows with its input takes 2 times as long for twice as much, work that grows with its square 4 times. */
const LINEAR = 3;
/** For work that does not grow with its input. */
const CONSTANT = 1.5;

/** Work on an input of one size. What prepares the input is not measured. */
type Work = () => unknown;

interface Case {
  title: string;
  /** The smaller of the two inputs. */
  size: number;
  /** Default: `LINEAR`. */
  atMost?: number;
  prepare(size: number, context: BenchContext): Promise<Work> | Work;
}

/** What a model, a command or a person can make as long as they like: the time for it must not grow with the square of its length. */
export const growth: Bench = {
  name: "growth",
  async run(context) {
    const rows = [];
    for (const each of cases) rows.push(await measure(each, context));
    return rows;
  },
};

async function measure({ title, size, atMost = LINEAR, prepare }: Case, context: BenchContext) {
  const sideOf = async (count: number): Promise<Contender> => {
    const work = await prepare(count, context);
    return { name: `${count}`, batch: 1, sample: () => processorMs(work) };
  };
  const contenders = { twice: await sideOf(2 * size), once: await sideOf(size) };
  for (const { sample } of Object.values(contenders)) await repeat(3, sample);
  context.progress(`growth: ${title}`);
  const { twice, once } = await takeTurns(contenders, {
    rounds: context.isQuick ? 5 : 15,
    signal: context.signal,
  });
  return compare(twice, once, {
    title: `twice as many ${title}`,
    unit: "ms",
    direction: "ours / rival",
    target: { kind: "at-most", value: atMost },
  });
}

/** The processor time of this process, which other programs do not add to. */
async function processorMs(work: Work): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const cases: Case[] = [
  {
    title: "pieces of 16 KiB of one event of a model",
    size: 640,
    prepare: (size) => async () => {
      const piece = Buffer.from("x".repeat(16 * 1024));
      const body = ReadableStream.from([
        Buffer.from("data: "),
        ...Array.from({ length: size }, () => piece),
        Buffer.from("\n\n"),
      ]);
      for await (const _ of readServerEvents(body, { idleTimeoutMs: 60_000 }));
    },
  },
  {
    title: "calls of one id in a history",
    size: 20_000,
    prepare(size) {
      const calls = Array.from({ length: size }, () => callOf("same"));
      const outputs = Array.from({ length: size }, () => outputOf("same"));
      return () => normalised([...calls, ...outputs]);
    },
  },
  {
    title: "calls in one step of a session file",
    size: 10_000,
    async prepare(size, { workspace }) {
      const file = join(workspace, `calls-${size}.jsonl`);
      const ids = Array.from({ length: size }, (_, at) => `c${at}`);
      const calls = ids.map((id) => ({ type: "function_call", name: "x", arguments: "{}", call_id: id }));
      const outputs = ids.map((id) => ({ type: "function_call_output", output: id, call_id: id }));
      const lines = [...calls, ...outputs].map((payload) =>
        JSON.stringify({ type: "response_item", payload }),
      );
      await writeFile(file, lines.join("\n"));
      return async () => {
        for await (const _ of stepsOf(readSessionLines(file)));
      };
    },
  },
  {
    title: "lines of a draft of which a window is shown",
    size: 50_000,
    atMost: CONSTANT,
    prepare(size) {
      const text = "line 12345\n".repeat(size);
      const draft = { text, cursor: text.length >> 1, elements: [] };
      return () => {
        for (let count = 0; count < 200; count++) layoutDraft(draft, { columns: 40, maxRows: 6 });
      };
    },
  },
  ...[
    ["letters", "x"],
    ["marks on one letter", "\u0301"],
    ["signs of two halves", "😀"],
  ].map(
    ([what, unit = ""]): Case => ({
      title: `${what} broken into rows`,
      size: 100_000,
      prepare: (size) => () => breakColumns(unit.repeat(size), 80),
    }),
  ),
  {
    title: "words broken into rows",
    size: 30_000,
    prepare: (size) => () => breakBetweenWords("ab ".repeat(size), 40),
  },
  {
    title: "equal lines that a patch is matched against",
    size: 100_000,
    prepare(size) {
      const before = "a\n".repeat(size);
      const wanted = `${" a\n".repeat(2_000)}-b`;
      const parsed = parsePatch(`*** Begin Patch\n*** Update File: f\n${wanted}\n*** End Patch`);
      if (parsed.kind !== "patch" || parsed.hunks[0]?.kind !== "update") throw new Error("no update");
      const { chunks } = parsed.hunks[0];
      return () => applyChunks(before, chunks, "f");
    },
  },
  ...hostilePatches(),
  {
    title: "requests to the engine at once",
    size: 128,
    prepare: requests,
  },
];

/** Texts that a careless regular expression or a search from the start again would take a square of their length for. */
function hostilePatches(): Case[] {
  const texts: [what: string, size: number, text: (size: number) => string][] = [
    ["blanks of one line", 100_000, (size) => `${" ".repeat(size)}x`],
    ["blank lines", 100_000, (size) => "\n".repeat(size)],
    ["carriage returns", 100_000, (size) => `${"\r".repeat(size)}x`],
    ["markers", 25_000, (size) => "@@\n".repeat(size)],
    ["headers", 10_000, (size) => "*** Delete File: a.txt\n".repeat(size)],
    ["blanks before a heredoc", 50_000, (size) => `cd ${"a".repeat(size)} && ${" ".repeat(size)}apply_patch`],
    ["diff headers", 10_000, (size) => "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n".repeat(size)],
    ["diff hunks", 10_000, (size) => `--- a/a.txt\n+++ b/a.txt\n${"@@ -1,9 +1,9 @@\n a\n".repeat(size)}`],
    ["chunks that match late", 5_000, (size) => `*** Update File: a.txt\n${"@@\n-a \n".repeat(size)}`],
  ];
  return texts.map(([what, size, text]) => ({
    title: `${what} in a patch`,
    size,
    prepare(count) {
      const body = text(count);
      const file = Buffer.from("a\n".repeat(2 * count));
      return async () => {
        const patcher = textPatcher(() => filesWith(file));
        for (const patch of [body, `*** Begin Patch\n${body}\n*** End Patch`])
          await patcher.applyAnyPatch(patch, { cwd: "/w" });
        recognisePatchScript(body);
      };
    },
  }));
}

/** One file, whatever its name is, that nothing changes. */
function filesWith(data: Buffer): PatchFiles {
  return {
    read: async () => data,
    writeEach: async (files) => ({ written: files.length, failure: null }),
    stat: async () => ({ type: "file", mode: 0o644, dev: 0n, ino: 1n, linkTarget: null }),
    mkdir: async () => undefined,
    remove: async () => undefined,
  };
}

async function requests(atOnce: number): Promise<Work> {
  const server = createServer((_, response) => void response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const { port } = server.address() as AddressInfo;
  const endpoint = { kind: "tcp", address: "tcp://bench", host: "127.0.0.1", port, tls: null } as const;
  const transport = openTransport(await openModem(endpoint), { apiVersion: "1.41" });
  return async () => {
    await Promise.all(
      Array.from({ length: atOnce }, () =>
        transport.json({ method: "GET", path: "/x" }, new AbortController().signal),
      ),
    );
  };
}
