import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rgPath } from "@vscode/ripgrep";
import { createToolRegistry, type ToolRegistry } from "brigbox/tools";
import { type Bench, type BenchContext, compare, type RatioRow } from "../bench.js";
import { outputOf } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const fileLines = 200;
const listedFiles = 2000;
const searchedFiles = 20_000;
const filesPerDirectory = 100;
const callsAtOnce = 50;

/** Reading, listing and searching: against the floor, the host, and the same calls one after the other. */
export const lookingTools: Bench = {
  name: "looking-tools",
  async run(context) {
    const { openSandbox, progress, workspace } = context;
    progress("making trees to look at");
    const file = join(workspace, "looking-file");
    const listed = join(workspace, "looking-listed");
    const searched = join(workspace, "looking-searched");
    await writeFile(file, `${"x".repeat(39)}\n`.repeat(fileLines));
    await makeTree(listed, listedFiles - listedFiles / filesPerDirectory);
    await makeTree(searched, searchedFiles);
    await using sandbox = await openSandbox();
    const tools = createToolRegistry(sandbox, { cwd: workspace });
    return [
      await readAgainstPing(context, { read: reader(tools, file), ping: () => sandbox.ping() }),
      await readTogether(context, reader(tools, file)),
      await listAgainstHost(context, tools, listed),
      await searchAgainstHost(context, tools, searched),
    ];
  },
};

type Call = () => Promise<unknown>;

async function readAgainstPing(context: BenchContext, { read, ping }: Record<"read" | "ping", Call>) {
  return await compareInTurns(context, {
    title: `read_file of ${fileLines} lines against one byte and back`,
    ours: { name: "read_file", call: read },
    rival: { name: "sandbox.ping", call: ping },
    atMost: 5,
  });
}

async function readTogether(context: BenchContext, read: Call): Promise<RatioRow> {
  return await compareInTurns(context, {
    title: `${callsAtOnce} read_file calls at once`,
    ours: { name: "at once", call: () => Promise.all(Array.from({ length: callsAtOnce }, read)) },
    rival: { name: "one after the other", call: () => repeat(callsAtOnce, read) },
    atMost: 0.5,
  });
}

async function listAgainstHost(
  context: BenchContext,
  tools: ToolRegistry,
  directory: string,
): Promise<RatioRow> {
  const args = { dir_path: directory, limit: listedFiles };
  return await compareInTurns(context, {
    title: `list_dir of ${listedFiles} entries`,
    ours: { name: "list_dir", call: () => succeed(tools, "list_dir", args) },
    rival: {
      name: "readdir on the host",
      call: () => readdir(directory, { recursive: true, withFileTypes: true }),
    },
    atMost: 3,
  });
}

async function searchAgainstHost(
  context: BenchContext,
  tools: ToolRegistry,
  directory: string,
): Promise<RatioRow> {
  const args = [
    "--files-with-matches",
    "--sortr=modified",
    "--regexp",
    "needle",
    "--no-messages",
    "--",
    directory,
  ];
  return await compareInTurns(context, {
    title: `grep_files over ${searchedFiles} files`,
    ours: {
      name: "grep_files",
      call: () => succeed(tools, "grep_files", { pattern: "needle", path: directory }),
    },
    rival: { name: "rg on the host", call: () => outputOf(rgPath, args) },
    atMost: 1.2,
    batch: 1,
  });
}

async function compareInTurns(
  { isQuick, signal, progress }: BenchContext,
  { title, ours, rival, atMost, batch = 5 }: Comparison,
): Promise<RatioRow> {
  await repeat(batch * 2, ours.call);
  await repeat(batch * 2, rival.call);
  const rounds = isQuick ? 8 : 42;
  const contender = ({ name, call }: NamedCall) => ({ name, batch, sample: () => timed(call) });
  const taken = await takeTurns(
    { ours: contender(ours), rival: contender(rival) },
    { rounds, signal, onRound: (round) => progress(`${title}, round ${round} of ${rounds}`) },
  );
  return compare(taken.ours, taken.rival, {
    title,
    unit: "ms",
    direction: "ours / rival",
    target: { kind: "at-most", value: atMost },
  });
}

interface Comparison {
  title: string;
  ours: NamedCall;
  rival: NamedCall;
  atMost: number;
  /** Calls in a row. Default: 5. */
  batch?: number;
}

interface NamedCall {
  name: string;
  call: Call;
}

function reader(tools: ToolRegistry, file: string): Call {
  return () => succeed(tools, "read_file", { file_path: file });
}

/** A call that fails is fast, and must not count. */
async function succeed(tools: ToolRegistry, name: string, args: object): Promise<void> {
  const { content, success } = await tools.get(name).execute(args);
  if (!success) throw new Error(content);
}

/** A hundred small files in each directory; one of them has the word that is searched for. */
async function makeTree(root: string, files: number): Promise<void> {
  for (let made = 0; made < files; made += filesPerDirectory) {
    const directory = join(root, `directory-${made / filesPerDirectory}`);
    await mkdir(directory, { recursive: true });
    const names = Array.from(
      { length: Math.min(filesPerDirectory, files - made) },
      (_, index) => `file-${index}`,
    );
    await Promise.all(
      names.map((name, index) =>
        writeFile(join(directory, name), `${index === 7 ? "needle" : "straw"}\n${"hay\n".repeat(100)}`),
      ),
    );
  }
}
