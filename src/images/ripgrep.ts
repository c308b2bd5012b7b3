import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import * as z from "zod";
import { readTarFile } from "../docker/tar.js";
import { BrigError } from "../errors.js";
import { inTemporaryDirectory } from "./temporary-directory.js";

/** The npm package that carries a static `rg` for one architecture, in the version that brig is locked to. */
export interface RipgrepPackage {
  name: string;
  version: string;
}

const packageArch: Record<string, string> = { amd64: "x64", arm64: "arm64" };

const manifest = z.object({ optionalDependencies: z.record(z.string(), z.string()) });

/** The package for an engine's architecture ("amd64" or "arm64"). */
export async function ripgrepPackage(arch: string): Promise<RipgrepPackage> {
  const name = `@vscode/ripgrep-linux-${packageArch[arch]}`;
  const source = await readFile(join(ripgrepHome(), "package.json"), "utf8");
  const version = manifest.parse(JSON.parse(source)).optionalDependencies[name];
  if (version !== undefined) return { name, version };
  throw new BrigError(`brig has no ripgrep for the architecture ${arch}`, {
    code: "image.build-failed",
    hint: "use an engine on amd64 or arm64",
  });
}

/** The bytes of `rg`: from the installed package, or, when this host has another architecture, from the registry. */
export async function readRipgrep(wanted: RipgrepPackage): Promise<Uint8Array> {
  return (await readInstalled(wanted)) ?? (await fetchRipgrep(wanted));
}

async function readInstalled({ name, version }: RipgrepPackage): Promise<Uint8Array | null> {
  try {
    const home = dirname(createRequire(join(ripgrepHome(), "package.json")).resolve(`${name}/package.json`));
    const installed = z
      .object({ version: z.string() })
      .parse(JSON.parse(await readFile(join(home, "package.json"), "utf8")));
    return installed.version === version ? await readFile(join(home, "bin", "rg")) : null;
  } catch {
    return null;
  }
}

async function fetchRipgrep({ name, version }: RipgrepPackage): Promise<Uint8Array> {
  return await inTemporaryDirectory(async (directory) => {
    try {
      const { execa } = await import("execa");
      const { stdout } = await execa("npm", ["pack", "--silent", `${name}@${version}`], { cwd: directory });
      return await readTarFile(join(directory, stdout.trim()), "package/bin/rg");
    } catch (cause) {
      throw new BrigError(`cannot fetch ripgrep for the engine's architecture: ${name}@${version}`, {
        code: "image.build-failed",
        hint: `is the npm registry reachable? try: npm pack ${name}@${version}`,
        cause,
      });
    }
  });
}

function ripgrepHome(): string {
  const require = createRequire(import.meta.url);
  return dirname(dirname(require.resolve("@vscode/ripgrep")));
}
