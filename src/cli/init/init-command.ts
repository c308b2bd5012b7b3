import { mkdir, open } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { write, writeJson } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { type ProjectProposal, proposeFor } from "./propose-project.js";

interface InitFlags {
  cd?: string;
  name?: string;
  dryRun?: boolean;
  json?: boolean;
}

/** Proposes what a sandbox of a project needs, and keeps it as a profile. */
export function defineInit(command: Command, context: CliContext): void {
  command
    .option("-C, --cd <dir>", "the project (default: the current directory)")
    .option("--name <name>", "the name of the profile (default: that of the directory)")
    .option("--dry-run", "only print what would be written")
    .option("--json", "print the proposal as JSON")
    .addHelpText("after", help)
    .action(async (flags: InitFlags) => await init(flags, context));
}

const help = `
It looks at the files of the project, runs nothing and needs no engine. The profile is a file of yours, NAME.config.toml beside
config.toml: brig run -p NAME uses it. A file that is there already stays as it is.`;

async function init(flags: InitFlags, context: CliContext): Promise<void> {
  const { cwd, environment, stdout } = context;
  const directory = resolve(cwd, flags.cd ?? ".");
  const name = flags.name ?? usualName(directory);
  if (!/^[\w-]{1,64}$/.test(name))
    throw invalidUsage(
      `${JSON.stringify(name)} is no name of a profile`,
      "use letters, digits, - and _, such as --name app",
    );
  const proposal = await proposeFor(directory);
  const file = join(environment.brigHome, `${name}.config.toml`);
  const text = profileText(proposal, directory);
  if (flags.dryRun !== true) await writeNew(file, text);
  const isWritten = flags.dryRun !== true;
  const argv = commandLine(proposal);
  if (flags.json === true)
    return await writeJson(stdout, {
      directory,
      ...proposal,
      profile: { name, file, text, isWritten },
      exec: argv,
    });
  const told = isWritten ? `wrote ${file}` : `would write ${file}`;
  const run = ["brig", "run", "-p", name, ...imageOptions(proposal), "PROMPT"];
  await write(
    stdout,
    [
      ...[`${told}:`, "", text.trimEnd().replace(/^(?=.)/gm, "  "), ""],
      ...proposal.notes.map((note) => `Note: ${note}`),
      ...["To use it:", `  ${shellQuote(run)}`, `  ${shellQuote(argv)}`, ""],
    ].join("\n"),
  );
}

function usualName(directory: string): string {
  const name = basename(directory)
    .replace(/[^\w-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
  return name === "" ? "project" : name;
}

/** Each line has its reason above it. The image of a Dockerfile is named by an option, since it has to be built. */
function profileText({ image, setup, setupNetwork, network }: ProjectProposal, directory: string): string {
  const isName = image.option === "--container-image";
  return [
    `# For the project ${JSON.stringify(directory)}.`,
    "",
    `# ${isName ? "" : `The image is that of ${image.option}: `}${image.reason}.`,
    ...(isName ? [`container_image = ${JSON.stringify(image.value)}`] : []),
    "",
    `# ${network.reason}.`,
    `network = ${JSON.stringify(network.value)}`,
    ...(setup === null || setupNetwork === null
      ? []
      : [
          ...["", "[setup]", `# ${setup.reason}.`],
          `command = ${JSON.stringify(["/bin/sh", "-c", setup.value])}`,
          ...[`# ${setupNetwork.reason}.`, `network = ${JSON.stringify(setupNetwork.value)}`],
        ]),
    "",
  ].join("\n");
}

function imageOptions({ image: { option, value } }: ProjectProposal): string[] {
  if (option === "--devcontainer") return [option];
  return option === "--dockerfile" ? [option, value] : [];
}

function commandLine(proposal: ProjectProposal): string[] {
  const { image, setup, setupNetwork } = proposal;
  return [
    ...["brig", "exec"],
    ...(image.option === "--container-image" ? [image.option, image.value] : imageOptions(proposal)),
    ...(setup === null ? [] : ["--setup", setup.value]),
    ...(setupNetwork === null ? [] : ["--setup-network", setupNetwork.value]),
    ...["--", "COMMAND"],
  ];
}

/** Error: `usage.invalid` if there is anything at this path. */
async function writeNew(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    await using handle = await open(file, "wx", 0o600);
    await handle.writeFile(text);
  } catch (cause) {
    if (errnoOf(cause) === "EEXIST")
      throw invalidUsage(
        `${file} is there already, and stays as it is`,
        "use --name for another one, or --dry-run",
      );
    throw new BrigError(`${file} cannot be written: ${errnoOf(cause) ?? "unknown error"}`, {
      code: "file.failed",
      cause,
    });
  }
}
