import type { Command } from "commander";
import { formatTable } from "../lib/table.js";
import { describeGate, isOffered } from "../tools/tool-gates.js";
import type { CliContext } from "./context.js";
import { write, writeJson } from "./render.js";
import { toolCatalogue } from "./tool-catalogue.js";

export function defineTools(command: Command, { stdout }: CliContext): void {
  command.option("--json", "print them as JSON").action(async ({ json }: { json?: boolean }) => {
    const tools = describeTools();
    if (json === true) return await writeJson(stdout, tools);
    const rows = tools.map(({ name, isOn, why, supportsParallel }) => [
      name,
      isOn ? "on" : "off",
      supportsParallel ? "yes" : "no",
      why,
    ]);
    await write(stdout, formatTable([["TOOL", "STATE", "PARALLEL", "WHY"], ...rows]));
  });
}

interface ToolDescription {
  name: string;
  isOn: boolean;
  /** Which setting decides. */
  why: string;
  supportsParallel: boolean;
  description: string;
}

function describeTools(): ToolDescription[] {
  return toolCatalogue()
    .getAll()
    .map(({ name, supportsParallel, description }) => ({
      name,
      isOn: isOffered(name),
      why: describeGate(name),
      supportsParallel,
      description,
    }));
}
