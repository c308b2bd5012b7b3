import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { type AptOptions, aptInstall, runProgram } from "./apt.js";

const suite = "bookworm";

/** Documentation that Debian's own slim images leave out, too. */
const excludedPaths = ["doc", "groff", "info", "linda", "lintian", "locale", "man"].map(
  (name) => `/usr/share/${name}`,
);

export interface BootstrapOptions extends AptOptions {
  /** The engine's: "amd64" or "arm64". */
  arch: string;
  /** Whether mmdebstrap may be installed with apt. */
  mayInstall: boolean;
}

/** Builds a minimal Debian root file system from Debian's package archive, as a tar file in `directory`. */
export async function bootstrapDebian(directory: string, options: BootstrapOptions): Promise<string> {
  if (options.arch !== hostArch())
    throw cannotBootstrap(`the engine's architecture is ${options.arch}, and this machine's is not`);
  const tar = join(directory, "debian.tar");
  const bootstrap = await chooseBootstrap(options);
  await bootstrap(tar, options);
  return tar;
}

type Bootstrap = (tar: string, options: BootstrapOptions) => Promise<void>;

async function chooseBootstrap(options: BootstrapOptions): Promise<Bootstrap> {
  if (existsSync("/usr/bin/mmdebstrap")) return mmdebstrap;
  const isRoot = process.getuid?.() === 0;
  if (isRoot && existsSync("/usr/sbin/debootstrap")) return debootstrap;
  if (!isRoot || !options.mayInstall || !existsSync("/usr/bin/apt-get")) {
    throw cannotBootstrap("mmdebstrap is not installed");
  }
  options.onProgress?.("installing mmdebstrap with apt");
  await aptInstall(["mmdebstrap", "debian-archive-keyring"], options);
  return mmdebstrap;
}

async function mmdebstrap(tar: string, options: BootstrapOptions): Promise<void> {
  const exclusions = excludedPaths.map((path) => `--dpkgopt=path-exclude=${path}/*`);
  await runProgram(
    [
      "mmdebstrap",
      "--variant=minbase",
      `--architectures=${options.arch}`,
      ...exclusions,
      // As in Debian's own images: dpkg does not wait for the disk after each file, and apt fetches no translations.
      "--dpkgopt=force-unsafe-io",
      '--aptopt=Acquire::Languages "none"',
      "--dpkgopt=path-include=/usr/share/doc/*/copyright",
      suite,
      tar,
    ],
    options,
  );
}

async function debootstrap(tar: string, options: BootstrapOptions): Promise<void> {
  const root = `${tar}.root`;
  const archive = "http://deb.debian.org/debian";
  await runProgram(
    ["debootstrap", "--variant=minbase", `--arch=${options.arch}`, suite, root, archive],
    options,
  );
  await writeFile(join(root, "etc/apt/sources.list"), sourcesList(archive));
  await rm(join(root, "var/cache/apt/archives"), { recursive: true, force: true });
  await Promise.all(excludedPaths.map((path) => rm(join(root, path), { recursive: true, force: true })));
  await runProgram(["tar", "--numeric-owner", "-C", root, "-cf", tar, "."], options);
}

function sourcesList(archive: string): string {
  return [
    `deb ${archive} ${suite} main`,
    `deb ${archive} ${suite}-updates main`,
    `deb http://security.debian.org/debian-security ${suite}-security main`,
    "",
  ].join("\n");
}

function hostArch(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}

function cannotBootstrap(why: string): BrigError {
  return new BrigError(`debian:bookworm-slim can be neither pulled nor built here: ${why}`, {
    code: "image.build-failed",
    hint: "docker pull debian:bookworm-slim, or: sudo apt-get install -y mmdebstrap && brig image build",
  });
}
