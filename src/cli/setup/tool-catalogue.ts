import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import type { ToolRegistry } from "../../tools/index.js";
import { createToolRegistry } from "../../tools/index.js";

/** The tools without a sandbox: they can be listed and described, not called. */
export function toolCatalogue(): ToolRegistry {
  const nowhere = () => Promise.reject(new BrigError("there is no sandbox", { code: "exec.invalid" }));
  const files = {
    read: nowhere,
    readPastHole: nowhere,
    stat: nowhere,
    list: nowhere,
    writeEach: nowhere,
    mkdir: nowhere,
    remove: nowhere,
  };
  return createToolRegistry({ spawn: nowhere, files }, { cwd: "/" });
}

/** Error: `tool.unknown`, with the closest name as a hint. */
export function requireTool(name: string): void {
  const catalogue = toolCatalogue();
  if (catalogue.has(name)) return;
  const meant = suggest(name, catalogue.getToolNames());
  throw new BrigError(`there is no tool "${name}"`, {
    code: "tool.unknown",
    hint:
      meant === null ? "run brig tools for a list" : `did you mean ${meant}? brig tools lists all of them`,
  });
}
