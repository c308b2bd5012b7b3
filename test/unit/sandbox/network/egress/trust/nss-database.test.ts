import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../../src/errors.js";
import { MkdirFlag } from "../../../../../../src/sandbox/channel/protocol.js";
import { trustInNss } from "../../../../../../src/sandbox/network/egress/trust.js";
import type { SandboxPlan } from "../../../../../../src/sandbox/plan/plan.js";
import { failure } from "../../../played-sandbox.js";
import { type ImageEntry, playedImage } from "./played-image.js";

const EACCES = 13;
const AUTHORITY = "/dev/shm/brig-authority.pem";
const DATABASE = ["-d", "sql:/home/brig/.pki/nssdb"];
const imageEnvironment = { PATH: "/usr/bin:/bin", OTHER: "1" };
const mountedAt = (path: string) => ({ path }) as SandboxPlan["mounts"][number];
const volumeAt = (path: string) => ({ path }) as SandboxPlan["volumes"][number];

type Wanted = Partial<Parameters<typeof trustInNss>[1]>;

async function place(entries: Record<string, ImageEntry> = { "/usr/bin/certutil": "x" }) {
  const { image, link, context } = await playedImage(entries);
  const trust = async (wanted: Wanted = {}) =>
    await trustInNss(context, { imageEnvironment, home: "/home/brig", mounts: [], volumes: [], ...wanted });
  return { image, link, trust };
}

const added = ["/usr/bin/certutil", "-A", "-n", "brig", "-t", "C,,", "-i", AUTHORITY, ...DATABASE];

describe("the user's database of NSS", () => {
  it("is made where there is none, with the authority in it", async () => {
    const { image, trust } = await place();
    await trust();
    expect(image.made).toEqual([{ path: "/home/brig/.pki/nssdb", mode: 0o700, flags: MkdirFlag.parents }]);
    const options = { env: ["PATH=/usr/bin:/bin", "HOME=/home/brig"], timeoutMs: 10_000, endsTree: true };
    expect(image.runs).toEqual([
      { argv: ["/usr/bin/certutil", "-N", "--empty-password", ...DATABASE], ...options },
      { argv: added, ...options },
    ]);
  });

  it("that is there loses the certificate of a time before, and gets this one", async () => {
    const { image, trust } = await place({
      "/usr/bin/certutil": "x",
      "/home/brig/.pki/nssdb/cert9.db": "a database",
    });
    // There may be none of before, in which case certutil fails.
    image.runsCommand = ({ argv }) => (argv[1] === "-D" ? 255 : 0);
    await trust();
    expect(image.runs.map(({ argv }) => argv)).toEqual([
      ["/usr/bin/certutil", "-D", "-n", "brig", ...DATABASE],
      added,
    ]);
  });

  it("is left alone in an image without certutil", async () => {
    const { image, trust } = await place({ "/usr/bin/other": "x" });
    await trust();
    expect(image.made).toEqual([]);
    expect(image.runs).toEqual([]);
    const { image: other, trust: trustOther } = await place();
    await trustOther({ imageEnvironment: {} });
    expect(other.runs).toEqual([]);
  });

  it("is not made where its directory cannot be", async () => {
    const { image, trust } = await place();
    image.fails = (operation) => (operation === "mkdir" ? EACCES : 0);
    await trust();
    expect(image.runs).toEqual([]);
  });

  it.each(["/home/brig", "/home", "/home/brig/.pki", "/home/brig/.pki/nssdb", "/"])(
    "is left alone where %s is a directory of the host or a volume",
    async (path) => {
      const { image, trust } = await place();
      await trust({ mounts: [mountedAt("/elsewhere"), mountedAt(path)] });
      await trust({ volumes: [volumeAt(path)] });
      expect(image.requests).toEqual([]);
      expect(image.runs).toEqual([]);
    },
  );

  it.each(["/home/bri", "/home/brig/.pki/nssdb/below", "/work"])(
    "is made where %s is one, which it does not lie in",
    async (path) => {
      const { image, trust } = await place();
      await trust({ mounts: [mountedAt(path)], volumes: [volumeAt(path)] });
      expect(image.runs).toHaveLength(2);
    },
  );

  it("is given up when the start is aborted while certutil runs", async () => {
    const { image, trust } = await place();
    const controller = new AbortController();
    image.runsCommand = ({ argv }) => {
      if (argv[1] === "-A") return 0;
      controller.abort(new Error("enough"));
      return undefined;
    };
    expect(await failure(trust({ signal: controller.signal }))).toBe(controller.signal.reason);
  });

  it("is an error where the sandbox ends meanwhile", async () => {
    const { image, link, trust } = await place();
    image.runsCommand = () => {
      link.end(new BrigError("over", { code: "sandbox.gone", reason: "killed" }));
      return undefined;
    };
    expect(await failure(trust())).toMatchObject({ code: "sandbox.gone" });
  });
});
