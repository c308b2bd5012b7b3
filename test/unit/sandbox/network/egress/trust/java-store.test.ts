import { describe, expect, it } from "vitest";
import { authoritiesOfJava, findJava } from "../../../../../../src/sandbox/network/egress/trust.js";
import { writeKeyStore } from "../../../../../../src/sandbox/network/egress/trust-key-store.js";
import { type ImageEntry, playedImage } from "./played-image.js";

const EACCES = 13;
const store = (...certificates: string[]) => writeKeyStore(certificates.map((one) => Buffer.from(one)));

describe("the JVM of an image", () => {
  const find = async (entries: Record<string, ImageEntry>, variables: Record<string, string>) =>
    await findJava((await playedImage(entries)).context, variables);

  it("is that of JAVA_HOME before those of PATH", async () => {
    const entries = { "/opt/jdk/bin/java": "x", "/usr/bin/java": "x" };
    expect(await find(entries, { JAVA_HOME: "/opt/jdk", PATH: "/usr/bin" })).toBe("/opt/jdk/bin/java");
    expect(await find(entries, { JAVA_HOME: "/opt/jdk/", PATH: "" })).toBe("/opt/jdk/bin/java");
    expect(await find(entries, { JAVA_HOME: "/none", PATH: "/usr/bin" })).toBe("/usr/bin/java");
    expect(await find(entries, { PATH: "/usr/bin" })).toBe("/usr/bin/java");
  });

  it("is not looked for at a JAVA_HOME that is no absolute path", async () => {
    const entries = { "/bin/java": "x", "/jdk/bin/java": "x" };
    expect(await find(entries, { JAVA_HOME: "" })).toBeNull();
    expect(await find(entries, { JAVA_HOME: "jdk" })).toBeNull();
    expect(await find(entries, {})).toBeNull();
  });
});

describe("the authorities of a JVM", () => {
  const of = async (entries: Record<string, ImageEntry>, java = "/jdk/bin/java") => {
    const { image, context } = await playedImage({ "/jdk/bin/java": "x", ...entries });
    const found = await authoritiesOfJava(context, java);
    return { found: found?.map(String) ?? null, image };
  };

  it.each(["/jdk/lib/security/jssecacerts", "/jdk/lib/security/cacerts", "/jdk/jre/lib/security/cacerts"])(
    "are those of %s",
    async (path) => {
      expect((await of({ [path]: store("one", "two") })).found).toEqual(["one", "two"]);
    },
  );

  it("are those of the first store that can be read and has any", async () => {
    const all = {
      "/jdk/lib/security/jssecacerts": store("first"),
      "/jdk/lib/security/cacerts": store("second"),
      "/jdk/jre/lib/security/cacerts": store("third"),
    };
    expect((await of(all)).found).toEqual(["first"]);
    expect((await of({ ...all, "/jdk/lib/security/jssecacerts": store() })).found).toEqual(["second"]);
    const spoilt = { ...all, "/jdk/lib/security/jssecacerts": "no store", "/jdk/lib/security/cacerts": "" };
    expect((await of(spoilt)).found).toEqual(["third"]);
    const cut = { ...all, "/jdk/lib/security/jssecacerts": store("first").subarray(0, 40) };
    expect((await of(cut)).found).toEqual(["second"]);
  });

  it("are unknown where there is no store, or none with any", async () => {
    const without = { "/jdk/bin/java": "x" };
    const empty = { ...without, "/jdk/lib/security/cacerts": store() };
    for (const entries of [without, empty]) {
      const { context } = await playedImage(entries);
      expect(await authoritiesOfJava(context, "/jdk/bin/java")).toBeNull();
    }
  });

  it("are found from where the links of its program lead, also below a directory that is a link", async () => {
    const entries = {
      "/usr/bin/java": { link: "/etc/alternatives/java" },
      "/etc/alternatives/java": { link: "../../opt/jdk/bin/java" },
      "/opt/jdk/bin/java": { link: "real-java" },
      "/opt/jdk/bin/real-java": "x",
      "/opt/jdk": { link: "/opt/jdk-21" },
      "/opt/jdk-21/bin/java": { link: "real-java" },
      "/opt/jdk-21/bin/real-java": "x",
      "/opt/jdk-21/lib/security/cacerts": store("followed"),
      "/usr/lib/security/cacerts": store("beside the link"),
    };
    expect((await of(entries, "/usr/bin/java")).found).toEqual(["followed"]);
  });

  it("are above where a directory of its path leads, which only the kernel follows", async () => {
    const entries = {
      "/usr/bin": { link: "/opt/tools/bin" },
      "/opt/tools/bin/java": "x",
      "/opt/tools/lib/security/cacerts": store("of the tools"),
      "/usr/lib/security/cacerts": store("of the link"),
    };
    expect((await of(entries, "/usr/bin/java")).found).toEqual(["of the tools"]);
  });

  it("are looked for beside the first link where links lead in a circle, of which 40 are followed", async () => {
    const { found, image } = await of(
      {
        "/a/java": { link: "../b/java" },
        "/b/java": { link: "/a/java" },
        "/lib/security/cacerts": store("of the root"),
      },
      "/a/java",
    );
    expect(found).toEqual(["of the root"]);
    expect(image.requests.filter(({ operation }) => operation === "stat")).toHaveLength(40);
    expect(image.requests.filter(({ operation }) => operation === "read").map(({ at }) => at)).toEqual([
      "/a/../lib/security/jssecacerts",
      "/a/../lib/security/cacerts",
    ]);
  });

  it("are those beside a program that cannot be looked at", async () => {
    const { image, context } = await playedImage({
      "/jdk/bin/java": "x",
      "/jdk/lib/security/cacerts": store("one"),
    });
    image.fails = (operation) => (operation === "stat" ? EACCES : 0);
    expect((await authoritiesOfJava(context, "/jdk/bin/java"))?.map(String)).toEqual(["one"]);
  });

  it("are not read from a store of more than 8 MiB", async () => {
    const { found, image } = await of({ "/jdk/lib/security/cacerts": Buffer.alloc(70_000) });
    expect(found).toBeNull();
    // The runner answers a request of one byte more than may be read.
    expect(image.requests.map(({ length }) => length)).toContain(8n * 1024n * 1024n + 1n);
  });
});
