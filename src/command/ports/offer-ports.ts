import type { SandboxPorts } from "./sandbox-ports.js";

/** A command that ends sooner than this needs no ports, so it must not pay for them. */
const PATIENCE_MS = 300;

/** Takes requests of `brig port` for ports of this sandbox, from a moment later on and until it is disposed of. */
export function offerPorts(ports: SandboxPorts, brigHome: string): AsyncDisposable {
  let serving: Promise<AsyncDisposable | null> | null = null;
  const timer = setTimeout(() => {
    // A failure is ignored: only `brig port` depends on this, and it will say that it found no sandbox.
    serving = serve(ports, brigHome).catch(() => null);
  }, PATIENCE_MS);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await (await serving)?.[Symbol.asyncDispose]();
    },
  };
}

async function serve(ports: SandboxPorts, brigHome: string): Promise<AsyncDisposable> {
  const { serveControl } = await import("./serve-control.js");
  return await serveControl(ports, brigHome);
}
