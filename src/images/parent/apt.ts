import { BrigError } from "../../errors.js";

export interface AptOptions {
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Installs Debian packages on this machine, as root. Fetches package lists only if needed. */
export async function aptInstall(packages: string[], options: AptOptions = {}): Promise<void> {
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  try {
    await apt(install, options);
  } catch {
    await apt(["update"], options);
    await apt(install, options);
  }
}

async function apt(argv: string[], { onProgress, signal }: AptOptions): Promise<void> {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  await runProgram(["apt-get", "-q", ...argv], { onProgress, signal, env });
}

/** The number of last lines that the error of a failed program shows. */
const shownLines = 10;

/**
 * Runs a program on this machine and reports each line it prints. Error: `image.build-failed`, with the last
 * lines.
 */
export async function runProgram(
  [program = "", ...argv]: string[],
  { onProgress, signal, env = {} }: AptOptions & { env?: Record<string, string> },
): Promise<void> {
  signal?.throwIfAborted();
  const printed: string[] = [];
  try {
    // Loaded here because it takes longer than the rest of a start, and a start never gets here.
    const { execa } = await import("execa");
    const running = execa(program, argv, {
      all: true,
      buffer: false,
      stdin: "ignore",
      env,
      cancelSignal: signal,
    });
    for await (const line of running.iterable({ from: "all" })) {
      printed.push(line);
      if (printed.length > shownLines) printed.shift();
      onProgress?.(line);
    }
    await running;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new BrigError([`${program} ${argv.join(" ")} failed`, ...printed].join("\n  "), {
      code: "image.build-failed",
      cause,
    });
  }
}
