import { arch, platform } from "node:os";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { write, writeJson } from "../../command/index.js";
import { nodeVersion, readVersion } from "../../version.js";

export function defineVersion(command: Command, { stdout }: CliContext): void {
  command
    .option("--json", "print the versions of brig and Node, the platform and the architecture as JSON")
    .action(async ({ json = false }: { json?: boolean }) => {
      const version = readVersion();
      if (json) await writeJson(stdout, { version, node: nodeVersion(), platform: platform(), arch: arch() });
      else await write(stdout, `${version}\n`);
    });
}
