import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AwsKeys, type TimedCredentials } from "../../../../../../src/sandbox/egress/secrets/aws/aws-keys.js";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: START_MS }));
afterEach(() => void vi.useRealTimers());

function keysOf(name: string, expiresAtMs: number | null): TimedCredentials {
  return {
    credentials: {
      accessKeyId: `ID${name}`,
      secretAccessKey: `secret-of-${name}`,
      sessionToken: `token-of-${name}`,
    },
    expiresAtMs,
  };
}

/** Keys that are valid for an hour, and what is read after them. */
function place(found: () => Promise<TimedCredentials>) {
  let reads = 0;
  const renewed: string[] = [];
  const read = async () => {
    reads += 1;
    return await found();
  };
  const onRenewed = ({ accessKeyId }: { accessKeyId: string }) => void renewed.push(accessKeyId);
  const keys = new AwsKeys(keysOf("first", START_MS + HOUR_MS), { read, onRenewed });
  return {
    keys,
    renewed,
    reads: () => reads,
    at: async (ms: number) => {
      vi.setSystemTime(START_MS + ms);
      return (await keys.valid())?.accessKeyId ?? null;
    },
  };
}

describe("keys of AWS", () => {
  it("are read anew shortly before they expire, for which nobody waits who has others", async () => {
    const here = place(async () => keysOf("second", START_MS + 2 * HOUR_MS));
    expect(await here.at(0.9 * HOUR_MS)).toBe("IDfirst");
    expect(here.reads()).toBe(0);
    expect(await here.at(HOUR_MS - 60_000)).toBe("IDfirst");
    await vi.waitFor(async () => expect((await here.keys.valid())?.accessKeyId).toBe("IDsecond"));
    expect(await here.at(1.9 * HOUR_MS)).toBe("IDsecond");
    expect(here.reads()).toBe(1);
    expect(here.renewed).toEqual(["IDsecond"]);
  });

  it("that have expired are read anew, once for all who wait", async () => {
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const here = place(async () => {
      await gate;
      return keysOf("second", START_MS + 2 * HOUR_MS);
    });
    expect(await here.at(0.9 * HOUR_MS)).toBe("IDfirst");
    expect(here.reads()).toBe(0);
    vi.setSystemTime(START_MS + HOUR_MS);
    const waiting = [here.keys.valid(), here.keys.valid(), here.keys.valid()];
    release();
    expect((await Promise.all(waiting)).map((keys) => keys?.accessKeyId)).toEqual(
      new Array(3).fill("IDsecond"),
    );
    expect(await here.at(1.9 * HOUR_MS)).toBe("IDsecond");
    expect(here.reads()).toBe(1);
    expect(here.renewed).toEqual(["IDsecond"]);
  });

  it("that cannot be read anew are used until they expire, are none then, and are tried for again", async () => {
    let isBroken = true;
    const here = place(async () => {
      if (isBroken) throw new Error("no login");
      return keysOf("second", START_MS + 3 * HOUR_MS);
    });
    expect(await here.at(HOUR_MS - 1000)).toBe("IDfirst");
    // Not tried for each request.
    expect(await here.at(HOUR_MS)).toBe(null);
    expect(await here.at(HOUR_MS + 1000)).toBe(null);
    expect(here.reads()).toBe(1);
    isBroken = false;
    expect(await here.at(HOUR_MS + 6000)).toBe("IDsecond");
  });

  it("that have expired when they are read are as good as none", async () => {
    const here = place(async () => keysOf("late", START_MS + HOUR_MS));
    expect(await here.at(HOUR_MS)).toBe(null);
    expect(here.renewed).toEqual([]);
  });

  it("are read anew in half of their time if they have little", async () => {
    const here = place(async () => keysOf("short", Date.now() + 2000));
    expect(await here.at(HOUR_MS)).toBe("IDshort");
    expect(await here.at(HOUR_MS + 900)).toBe("IDshort");
    expect(here.reads()).toBe(1);
    expect(await here.at(HOUR_MS + 1100)).toBe("IDshort");
    expect(here.reads()).toBe(2);
  });

  it("that do not expire are never read anew", async () => {
    const read = async () => {
      throw new Error("not to be read");
    };
    const keys = new AwsKeys(keysOf("lasting", null), { read });
    vi.setSystemTime(START_MS + 10_000 * HOUR_MS);
    expect((await keys.valid())?.accessKeyId).toBe("IDlasting");
  });

  it("stay hidden in answers for some time after they were replaced", async () => {
    let number = 0;
    const here = place(async () => {
      number += 1;
      return keysOf(String(number), Date.now() + 2);
    });
    const hides = (text: string) => here.keys.hidden.includes(text);
    await here.at(HOUR_MS);
    expect([hides("secret-of-first"), hides("token-of-1")]).toEqual([true, true]);
    for (let at = 1; at <= 20; at++) expect(await here.at(HOUR_MS + at * 10)).not.toBe(null);
    expect([hides("secret-of-first"), hides("secret-of-21")]).toEqual([false, true]);
  });
});
