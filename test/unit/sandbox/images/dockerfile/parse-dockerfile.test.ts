import { describe, expect, it } from "vitest";
import {
  isPlatformOf,
  parseDockerfile,
  platformValues,
  replaceBases,
} from "../../../../../src/sandbox/images/dockerfile/dockerfile.js";

const basesOf = (text: string, buildArgs: Record<string, string> = {}) =>
  parseDockerfile(text, buildArgs).bases.map(({ reference }) => reference);
const featuresOf = (text: string) =>
  parseDockerfile(text, {}).buildKitFeatures.map(
    ({ line, name, isRecent }) => `${line}: ${name}${isRecent ? ", recent" : ""}`,
  );
const replaced = (text: string, names: Record<string, string>) =>
  replaceBases(text, parseDockerfile(text, {}).bases, (reference) => names[reference] ?? reference);

describe("the images that a Dockerfile is built from", () => {
  it("are those of FROM and of COPY --from, and none of its own stages", () => {
    const text = [
      "FROM --platform=linux/amd64 golang:1.25 AS Build",
      "RUN go build",
      "from build as tested",
      "FROM scratch",
      "COPY --from=build /a /a",
      "COPY --chown=1:1 --from=0 /a /b",
      "COPY --from=busybox:1.36 /bin/busybox /bin/sh",
      "COPY from --from=none.txt x",
    ].join("\n");
    expect(basesOf(text)).toEqual(["golang:1.25", "busybox:1.36", "none.txt"]);
  });

  it("may be named by arguments above the first stage, which the task may set", () => {
    const text = [
      "ARG VERSION=3.12",
      `ARG BASE="python:\${VERSION}" OTHER`,
      "ARG PLAIN='$VERSION'",
      `FROM \${BASE}-slim`,
      "ARG VERSION=2",
      "FROM python:$VERSION",
      `FROM \${OTHER:-alpine}`,
      `FROM debian\${OTHER:+:$OTHER}`,
      `FROM x:\${PLAIN}`,
    ].join("\n");
    expect(basesOf(text)).toEqual(["python:3.12-slim", "python:3.12", "alpine", "debian", "x:$VERSION"]);
    expect(basesOf(text, { VERSION: "3.9", OTHER: "12", toString: "x" })).toEqual([
      "python:3.9-slim",
      "python:3.9",
      "12",
      "debian:12",
      "x:$VERSION",
    ]);
  });

  it("are found in continued lines, with comments between, and under another escape character", () => {
    expect(basesOf("FROM \\\n # a comment\n\n  debian:12 \\\n  AS x\nFROM x")).toEqual(["debian:12"]);
    expect(basesOf("# escape=`\n# escape=\\\nFROM `\ndebian:12\nRUN dir C:\\\nFROM alpine")).toEqual([
      "debian:12",
      "alpine",
    ]);
    expect(basesOf("\uFEFF# syntax=docker/dockerfile:1\r\nFROM debian:12\r\nRUN x\r\n")).toEqual([
      "debian:12",
    ]);
  });

  it("are not looked for in heredocs", () => {
    const text =
      "FROM debian\nRUN <<EOF cat > /a <<-'B'\nFROM one\nEOF\nFROM two\n\tB\nCOPY --from=three /a /b\n";
    expect(basesOf(text)).toEqual(["debian", "three"]);
    expect(basesOf("FROM debian\nRUN echo $((1 <<EOF))\nFROM alpine")).toEqual(["debian", "alpine"]);
  });
});

describe("other images in place of those of a Dockerfile", () => {
  it("leave stages, platforms and line numbers as they are", () => {
    const text =
      "# top\nfrom --platform=linux/amd64 \\\n  debian:12 \\\n  AS one\nFROM one\nCOPY --chown=1 \\\n --from=busybox /a /b\nRUN echo debian:12\n";
    const result = replaced(text, { "debian:12": "local/debian@sha256:1", busybox: "local/b$&x" });
    expect(result.split("\n")).toEqual([
      "# top",
      "FROM --platform=linux/amd64 local/debian@sha256:1 AS one",
      "",
      "",
      "FROM one",
      "COPY --chown=1  --from=local/b$&x /a /b",
      "",
      "RUN echo debian:12",
      "",
    ]);
  });

  it("change no byte where there are none", () => {
    const text = "FROM  debian:12\r\n  RUN x \\\r\n # y\r\n z";
    expect(replaced(text, {})).toBe(text);
  });
});

describe("images that RUN mounts", () => {
  const text = [
    "FROM a AS one",
    "RUN --mount=type=bind,from=tools:1,target=/t --mount=from=one,target=/o \\",
    "  --mount=type=bind,target=/u,from=other cat <<EOF --mount=from=text",
    "--mount=from=tools:1",
    "EOF",
    "COPY --chmod=755 --from=tools:1 a b",
    "RUN echo --mount=from=nothing",
  ].join("\n");

  it("are bases like others", () => {
    const { bases } = parseDockerfile(text, {});
    expect(bases.map(({ reference }) => reference)).toEqual(["a", "tools:1", "other", "tools:1"]);
  });

  it("are replaced in the options only, and in no heredoc", () => {
    const { bases } = parseDockerfile(text, {});
    const replaced = replaceBases(text, bases, (name) =>
      name === "tools:1" ? "mirror/tools:1" : `${name}:2`,
    );
    expect(replaced.split("\n")).toEqual([
      "FROM a:2 AS one",
      "",
      "RUN --mount=type=bind,from=mirror/tools:1,target=/t --mount=from=one,target=/o   --mount=type=bind,target=/u,from=other:2 cat <<EOF --mount=from=text",
      "--mount=from=tools:1",
      "EOF",
      "COPY --chmod=755 --from=mirror/tools:1 a b",
      "RUN echo --mount=from=nothing",
    ]);
  });
});

describe("features of BuildKit", () => {
  it("are named with their lines", () => {
    const text = [
      "FROM debian",
      "RUN --mount=type=cache,target=/x --network=none apt-get update",
      "COPY --link --chmod=755 a b",
      "COPY <<EOF /a",
      "text",
      "EOF",
      "ADD --checksum=sha256:1 https://example.com/a /a",
      "HEALTHCHECK --interval=1s --start-interval=1s CMD true",
      `ENV SHORT=\${LONG#prefix} ESCAPED=\\\${LONG#prefix}`,
      "ADD --chown=1 https://example.com/one.git#main /one",
      "COPY <<EOF /b",
      "$HOME",
      "EOF",
    ].join("\n");
    expect(featuresOf(text)).toEqual([
      "2: RUN --mount",
      "2: RUN --network",
      "3: COPY --link",
      "3: COPY --chmod",
      "4: a heredoc in COPY",
      "7: ADD --checksum, recent",
      "8: HEALTHCHECK --start-interval, recent",
      `9: a pattern in \${…} in ENV, recent`,
      "10: a git repository in ADD, recent",
      "11: a variable in a heredoc in COPY, recent",
    ]);
  });

  it("are none in an ordinary Dockerfile", () => {
    // Patterns in variables are the shell's here.
    expect(
      featuresOf(`FROM debian\nRUN echo \${A#b} \${A%%c}\nENV A=\\\${B#c}\nADD https://a.org/b.tgz /`),
    ).toEqual([]);
    expect(
      featuresOf("FROM debian\nRUN tool --mount=x <<<EOF\nCOPY --chown=1 --from=0 a b\nRUN --\n"),
    ).toEqual([]);
  });
});

describe("platforms", () => {
  const read = (text: string, buildArgs = {}) => parseDockerfile(text, buildArgs);

  it("are those that FROM names, unless it names the engine's own", () => {
    const text = [
      "ARG ARCH=arm64",
      "FROM --platform=$BUILDPLATFORM debian AS one",
      `FROM --platform=\${TARGETPLATFORM} debian`,
      "FROM --platform=linux/$ARCH debian",
      "FROM one",
    ].join("\n");
    expect(read(text).platforms).toEqual([{ line: 4, platform: "linux/arm64" }]);
    expect(read(text, { ARCH: "amd64" }).platforms).toEqual([{ line: 4, platform: "linux/amd64" }]);
  });

  it("that are variables are left out for the classic builder", () => {
    const text =
      "ARG P=linux/amd64\nFROM --platform=$BUILDPLATFORM debian AS one\nFROM --platform=$P alpine\n";
    expect(replaced(text, {})).toBe("ARG P=linux/amd64\nFROM debian AS one\nFROM alpine\n");
    expect(replaced("FROM --platform=linux/amd64 debian", {})).toBe("FROM --platform=linux/amd64 debian");
  });

  it("get into arguments that are declared without a value", () => {
    const text = "FROM debian\nARG TARGETARCH TARGETOS=plan9\nRUN echo $TARGETVARIANT\nARG BUILDPLATFORM\n";
    expect(read(text).platformArguments).toEqual(["TARGETARCH", "BUILDPLATFORM"]);
    expect(platformValues(["TARGETARCH", "BUILDPLATFORM"], "arm64")).toEqual({
      TARGETARCH: "arm64",
      BUILDPLATFORM: "linux/arm64",
    });
  });

  it.each([
    ["linux/amd64", true],
    ["amd64", true],
    ["linux", true],
    ["linux/x86_64", true],
    ["linux/arm64/v8", false],
    ["windows/amd64", false],
    ["windows", false],
    ["", false],
  ])("%j is that of an amd64 engine: %s", (platform, isIts) => {
    expect(isPlatformOf(platform, "amd64")).toBe(isIts);
  });
});
