import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import {
  addSandboxOptions,
  commandDirectory,
  ENDS_WITH_INPUT,
  keptNote,
  noteWait,
  openFlaggedSandbox,
  READS_ONLY_EGRESS,
  readInput,
  receiptText,
  type SandboxFlags,
  say,
  write,
  writeJson,
} from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { withoutMark } from "../../lib/utf8.js";
import type { Receipt } from "../../sandbox/index.js";
import type { ToolOutput } from "../../tools/index.js";
import { createToolRegistry } from "../../tools/index.js";
import { requireTool } from "../setup/tool-catalogue.js";

const maxInputBytes = 64 * 1024 * 1024;

interface ToolFlags extends SandboxFlags {
  json?: boolean;
}

export function defineTool(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .argument("<name>", "the tool, for example shell_command; list them with: brig tools")
    .argument("[arguments]", "a JSON object, or - to read one from standard input", "{}")
    .option("--json", "print the result as a JSON object")
    .addHelpText("after", READS_ONLY_EGRESS)
    .action(async (name: string, source: string, flags: ToolFlags) => {
      requireTool(name);
      const called = await callTool({ name, args: await readArguments(source, context) }, flags, context);
      await printOutput(called, { asJson: flags.json === true, context });
      context.setExitStatus(called.output.success ? 0 : 1);
    });
}

interface CalledTool {
  output: ToolOutput;
  /** Null if the container was kept. */
  receipt: Receipt | null;
}

async function callTool(
  call: { name: string; args: unknown },
  flags: ToolFlags,
  context: CliContext,
): Promise<CalledTool> {
  await using sandbox = await openFlaggedSandbox(flags, context);
  const registry = createToolRegistry(sandbox, { cwd: commandDirectory(flags) ?? sandbox.workingDirectory });
  let output: ToolOutput;
  try {
    output = await registry.get(call.name).execute(call.args, { signal: context.signal });
  } catch (error) {
    // A failed call may nevertheless have left files.
    const receipt = await registry
      .close()
      .then(() => sandbox.close())
      .catch(() => null);
    if (receipt !== null) await say(context.stderr, receiptText(receipt));
    throw error;
  }
  await registry.close();
  const receipt = await sandbox.close();
  if (flags.keep === true) await say(context.stderr, keptNote(sandbox));
  return { output, receipt: flags.keep === true ? null : receipt };
}

async function readArguments(source: string, context: CliContext): Promise<unknown> {
  const json = source === "-" ? await readText(context) : source;
  try {
    return JSON.parse(withoutMark(json));
  } catch (cause) {
    throw new BrigError(
      `the tool's arguments are not JSON: ${cause instanceof Error ? cause.message : cause}`,
      {
        code: "tool.invalid-input",
        hint: `for example: brig tool shell_command '{"command": "ls"}'`,
        cause,
      },
    );
  }
}

async function readText(context: CliContext): Promise<string> {
  const awaited = "reading the tool's arguments from standard input";
  using _ = noteWait(context.stderr, { awaited, hint: ENDS_WITH_INPUT });
  const { stdin, signal } = context;
  const tooLong = () =>
    new BrigError(`standard input has more than ${maxInputBytes} bytes`, { code: "tool.invalid-input" });
  return (await readInput(stdin, { signal, maxBytes: maxInputBytes, tooLong })).toString("utf8");
}

async function printOutput(
  { output, receipt }: CalledTool,
  { asJson, context }: { asJson: boolean; context: CliContext },
): Promise<void> {
  const { stdout, stderr, environment } = context;
  const { command: _, ...shown } = output;
  if (asJson) return await writeJson(stdout, { ...shown, receipt });
  const text =
    output.content.endsWith("\n") || output.content === "" ? output.content : `${output.content}\n`;
  await write(
    stdout,
    stdout.isTTY === true ? neutralise(text, { colours: !environment.forbidsColor }) : text,
  );
  if (receipt !== null) await say(stderr, receiptText(receipt));
}
