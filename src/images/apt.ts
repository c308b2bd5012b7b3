import { execa } from "execa";
import { BrigError } from "../errors.js";

export interface AptOptions {
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Installs Debian packages on this machine. Needs root. Package lists are fetched only if it does not work without. */
export async function aptInstall(packages: string[], options: AptOptions = {}): Promise<void> {
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  if (await apt(install, options).then(yes, no)) return;
  try {
    await apt(["update"], options);
    await apt(install, options);
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw new BrigError(`cannot install ${packages.join(", ")} with apt`, {
      code: "image.build-failed",
      hint: `see what is wrong with: apt-get update && apt-get install ${packages.join(" ")}`,
      cause,
    });
  }
}

async function apt(argv: string[], { onProgress, signal }: AptOptions): Promise<void> {
  signal?.throwIfAborted();
  await runLoudly(["apt-get", "-q", ...argv], {
    onProgress,
    signal,
    env: { DEBIAN_FRONTEND: "noninteractive" },
  });
}

/** Runs a program on this machine and hands on each line it prints. A non-zero exit is an error. */
export async function runLoudly(
  [program = "", ...argv]: string[],
  { onProgress, signal, env = {} }: AptOptions & { env?: Record<string, string> },
): Promise<void> {
  const running = execa(program, argv, { all: true, stdin: "ignore", env, cancelSignal: signal });
  for await (const line of running.iterable({ from: "all" })) onProgress?.(line);
  await running;
}

const yes = () => true;
const no = () => false;
