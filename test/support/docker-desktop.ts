import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, type FakeEngine, fakeEngine, reply } from "./fake-engine.js";

/** What Docker Desktop 4.31 for Mac answers about itself, as far as brig reads it. */
const version = {
  Platform: { Name: "Docker Desktop 4.31.0 (153195)" },
  Components: [
    { Name: "Engine", Version: "26.1.4", Details: { GitCommit: "de5c9cf" } },
    {
      Name: "containerd",
      Version: "1.6.33",
      Details: { GitCommit: "d2d58213f83a351ca8f528a95fbd145f5654e957" },
    },
    { Name: "runc", Version: "1.1.12", Details: { GitCommit: "v1.1.12-0-g51d5e94" } },
    { Name: "docker-init", Version: "0.19.0", Details: { GitCommit: "de40ad0" } },
  ],
  Version: "26.1.4",
  ApiVersion: "1.45",
  MinAPIVersion: "1.24",
  Os: "linux",
  Arch: "arm64",
  KernelVersion: "6.6.31-linuxkit",
};

const info = () => ({
  Driver: "overlay2",
  DockerRootDir: "/var/lib/docker",
  OperatingSystem: "Docker Desktop",
  OSType: "linux",
  Architecture: "aarch64",
  KernelVersion: version.KernelVersion,
  Name: "docker-desktop",
  NCPU: 8,
  MemTotal: 8_222_806_016,
  MemoryLimit: true,
  SwapLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
  CgroupDriver: "cgroupfs",
  CgroupVersion: "2",
  Runtimes: { "io.containerd.runc.v2": { path: "runc" }, runc: { path: "runc" } },
  DefaultRuntime: "runc",
  SecurityOptions: ["name=seccomp,profile=unconfined", "name=cgroupns"],
  SystemTime: new Date().toISOString(),
});

export interface DesktopOptions {
  /** The words with which it refuses to create a container. Without it, it has no image and creates nothing. */
  refusal?: { status: number; words: string } | undefined;
}

/**
 * An engine that answers as Docker Desktop for Mac does, at its place in this home directory, to which the Docker client's context
 * leads that Docker Desktop writes.
 */
export async function dockerDesktop(home: string, { refusal }: DesktopOptions = {}): Promise<FakeEngine> {
  const socketPath = join(home, ".docker", "run", "docker.sock");
  mkdirSync(join(home, ".docker", "run"), { recursive: true });
  writeContext(home, socketPath);
  const answer: Answer = (request, response) => {
    const path = (request.url ?? "").replace(/^\/v[\d.]+/, "").replace(/\?.*/, "");
    const words = (status: number, message: string) => reply(response, status, { message });
    if (path === "/info") return reply(response, 200, info());
    if (path === "/containers/json") return reply(response, 200, []);
    if (refusal !== undefined && path === "/containers/create") return words(refusal.status, refusal.words);
    if (refusal !== undefined && path.startsWith("/images/")) return reply(response, 200, image);
    if (refusal !== undefined && request.method === "GET" && path.startsWith("/volumes/"))
      return reply(response, 200, {
        Name: path.slice("/volumes/".length),
        Mountpoint: "/var/lib/docker/volumes/x/_data",
      });
    return words(404, `No such image: ${path}`);
  };
  return await fakeEngine(answer, { version, socketPath });
}

const image = { Id: `sha256:${"1".repeat(64)}`, Size: 1, Architecture: "arm64", Config: {} };

function writeContext(home: string, socketPath: string): void {
  const id = createHash("sha256").update("desktop-linux").digest("hex");
  const meta = join(home, ".docker", "contexts", "meta", id);
  mkdirSync(meta, { recursive: true });
  writeFileSync(join(home, ".docker", "config.json"), JSON.stringify({ currentContext: "desktop-linux" }));
  writeFileSync(
    join(meta, "meta.json"),
    JSON.stringify({
      Name: "desktop-linux",
      Metadata: { Description: "Docker Desktop" },
      Endpoints: { docker: { Host: `unix://${socketPath}`, SkipTLSVerify: false } },
    }),
  );
}
