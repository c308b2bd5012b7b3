import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { RunFolder } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson } from "../../command/index.js";
import { BrigError, invalidUsage, isBrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { openBrowser } from "../setup/open-browser.js";

interface ViewFlags {
  out?: string;
  maxSize: number;
  port?: number;
  json?: boolean;
  open?: boolean;
}

const MEBIBYTE = 1024 * 1024;
const DEFAULT_SIZE_MIB = 32;
const MAX_SIZE_MIB = 1024;

export function defineView(command: Command, context: CliContext): void {
  command
    .argument("<run>", "the folder that brig batch wrote its results to")
    .argument("[other]", "a second run, to compare both")
    .option("-o, --out <file>", "write one HTML file that needs no server, instead of serving the run")
    .option(
      "--max-size <MiB>",
      "with -o: leave out the details of attempts beyond this size",
      sizeArgument,
      DEFAULT_SIZE_MIB,
    )
    .option("--port <port>", "where to serve (default: any free port)", portArgument)
    .option("--open", "open the page in a browser")
    .option("--json", "print the address, or what was written, as JSON")
    .addHelpText("after", HELP)
    .action(async (run: string, other: string | undefined, flags: ViewFlags) => {
      await view(other === undefined ? [run] : [run, other], flags, context);
    });
}

const HELP = `
Without -o the run is served on 127.0.0.1 until ctrl-C, and the page follows it while it is running. The address that is
printed contains a token; nobody can read the results without it.`;

async function view(paths: readonly string[], flags: ViewFlags, context: CliContext): Promise<void> {
  if (flags.out !== undefined && flags.port !== undefined)
    throw invalidUsage("--port is for serving a run, and -o writes a file", "leave one of them out");
  const { RunFolder } = await import("../../batch/index.js");
  const folders = await Promise.all(paths.map((path) => RunFolder.open(resolve(context.cwd, path))));
  if (flags.out === undefined) await serve(folders, flags, context);
  else await writePage(folders, { ...flags, out: resolve(context.cwd, flags.out) }, context);
}

async function serve(folders: readonly RunFolder[], flags: ViewFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, signal } = context;
  const [{ serveView, readViewPage }, { newToken }] = await Promise.all([
    import("../../batch/index.js"),
    import("../../lib/http/bearer-token.js"),
  ]);
  await serveView({
    folders,
    asset: await readViewPage(),
    port: flags.port ?? 0,
    token: newToken(),
    signal,
    onListening: (url) => {
      void (flags.json === true ? writeJson(stdout, { url }) : write(stdout, `${url}\n`));
      if (flags.json !== true) void say(stderr, "Open this address in a browser. ctrl-C ends the server.\n");
      if (flags.open === true) openBrowser(new URL(url), context, { isAskedFor: true });
    },
  });
}

async function writePage(
  folders: readonly RunFolder[],
  { out, maxSize, json, open: opens }: ViewFlags & { out: string },
  context: CliContext,
): Promise<void> {
  const { stdout, signal } = context;
  const { writeStaticPage, readViewPage } = await import("../../batch/index.js");
  const asset = await readViewPage();
  const report = await writeWholeFile(out, (file) =>
    // `file.write` would not do: it may write less than it was given, without an error.
    writeStaticPage(folders, (piece) => file.appendFile(piece), {
      asset,
      maxDetailBytes: maxSize * MEBIBYTE,
      signal,
    }),
  );
  if (json === true) await writeJson(stdout, { file: out, ...report });
  else {
    await write(stdout, `${out}\n`);
    if (report.leftOut > 0)
      await say(
        context.stderr,
        `The details of ${report.leftOut} of ${report.attempts} attempts are left out, because the page would become too ` +
          "large. See them with brig view without -o, or give a larger --max-size.\n",
      );
  }
  if (opens === true) openBrowser(new URL(`file://${encodeURI(out)}`), context, { isAskedFor: true });
}

/** Writes a temporary file and renames it, so that the file never exists half-written under its name. */
async function writeWholeFile<T>(path: string, fill: (file: FileHandle) => Promise<T>): Promise<T> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(temporary, "wx");
    let filled: T;
    try {
      filled = await fill(file);
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    return filled;
  } catch (cause) {
    await rm(temporary, { force: true });
    const errno = errnoOf(cause);
    if (errno === undefined || isBrigError(cause)) throw cause;
    throw new BrigError(`cannot write ${JSON.stringify(path)}: ${errno}`, {
      code: "usage.invalid",
      hint: "give -o another file",
      cause,
    });
  }
}

function sizeArgument(text: string): number {
  const size = Number(text);
  if (/^[0-9]+$/.test(text) && size >= 1 && size <= MAX_SIZE_MIB) return size;
  throw new InvalidArgumentError(`It must be a whole number of MiB from 1 to ${MAX_SIZE_MIB}.`);
}

function portArgument(text: string): number {
  const port = Number(text);
  if (/^[0-9]+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port: 0 to 65535.");
}
